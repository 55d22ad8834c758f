#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The shell scripts parse, and can be called.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

failed=0
for script in dev .ci/run cmake/*.sh tests/lint/*.sh tests/lint/deep/*.sh; do
  bash -n "$script" || failed=1
  [ -x "$script" ] || { echo "$script: not executable"; failed=1; }
done
exit $failed
