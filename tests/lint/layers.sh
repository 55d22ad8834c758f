#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who may include whom: data flows one way, foreign headers stay behind their one door (docs/architecture.md).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

grep -rnE '^[[:space:]]*#[[:space:]]*include' include src passes kernels --include='*.hpp' --include='*.h' --include='*.cpp' |
awk '
  BEGIN {
    public = "partita/"
    base = public "|src/base/"
    ir = base "|src/ir/"
    kernels = base "|kernels/"
    passes = ir "|src/ops/|kernels/|passes/"
    all = passes "|src/(compile|run|harness|api|io)/"
    allowed["include"]     = public
    allowed["src/base"]    = base
    allowed["src/ir"]      = ir "|kernels/(expr|problem)[.]hpp"   # the plain data that kernels are described with
    allowed["kernels"]     = kernels
    allowed["src/ops"]     = ir "|src/ops/|kernels/ref/"
    allowed["passes"]      = passes
    allowed["src/compile"] = allowed["src/run"] = passes "|src/(compile|run)/"
    allowed["src/harness"] = allowed["src/api"] = allowed["src/io"] = all
    allowed["src/cli"]     = all "|src/cli/"
    allowed["src/compat"]  = all "|src/compat/"

    # the rooms of generated code: what each may see of the others
    room["code"]     = "code"
    room["flat"]     = "code|flat"
    room["rows"]     = "code|flat|rows"
    room["products"] = "code|products"
    room["taps"]     = "code|flat|taps"
    room["pool"]     = "code|flat|taps|pool/[a-z_]+[.]"   # what all kinds of poolings share
    room["average"]  = room["pool"] "|pool/average"
    room["backward"] = room["average"] "|pool/backward|rows"
    room["indices"]  = room["backward"] "|pool/indices"
    room["forward"]  = room["average"] "|pool/(forward|indices)"
    room["resample"] = "code|flat|taps|pool/(backward|forward)|resample"

    # foreign headers: who may include them
    door["oneDNN"] = "^(kernels/onednn/|src/compat/dnnl_graph/)"
    door["Xbyak"]  = "^kernels/jit/"
    door["ONNX Runtime"] = "^src/compat/onnxruntime/"
  }
  {
    split($0, part, ":"); file = part[1]
    match($0, /["<][^">]+[">]/); header = substr($0, RSTART + 1, RLENGTH - 2); ours = substr($0, RSTART, 1) == "\""
    split(file, folder, "/"); from = folder[1] == "src" ? "src/" folder[2] : folder[1]

    # The headers of a door name each other by their places in it, as a client of the other library knows them.
    if (file ~ "^include/partita/compat/" && ours && header ~ /^([.][.]\/)?[a-z0-9_\/]+[.]h$/) next

    if (!(from in allowed)) complain("is in a folder that has no place in the order")
    else if (ours && header !~ "^(" allowed[from] ")") complain("may not include \"" header "\"")
    else if (from == "include" && !ours && header !~ /^[a-z_]+$|^std(def|int|bool)[.]h$/)
      complain("is public and may include nothing but the standard library, not <" header ">")
    if (file ~ "^kernels/jit/") {
      inside = folder[3] == "pool" && 4 in folder && folder[4] !~ /[.]/ ? folder[4] : folder[3]
      if (!(inside in room)) complain("is in a room that has no place in the order")
      else if (header ~ "^kernels/jit/" && header !~ "^kernels/jit/(" room[inside] ")")
        complain("may not include \"" header "\" from its room")
    }
    foreign = header ~ /(^|\/)dnnl/ ? "oneDNN" : header ~ /^xbyak/ ? "Xbyak" : ""
    if (!ours && header ~ /(^|\/)onnxruntime/) foreign = "ONNX Runtime"
    if (foreign && file !~ door[foreign]) complain("may not include " foreign " (<" header ">)")
  }
  function complain(what) { print file ":" part[2] ": " what; failed = 1 }
  END { exit failed }'
