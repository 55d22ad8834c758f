// SPDX-License-Identifier: Apache-2.0
// Everything of Partita's C++ interface.
#pragma once

#include "partita/engine.hpp"
#include "partita/executor.hpp"
#include "partita/graph.hpp"
#include "partita/json.hpp"
#include "partita/logical_tensor.hpp"
#include "partita/op.hpp"
#include "partita/partition.hpp"
#include "partita/registry.hpp"
#include "partita/status.hpp"
#include "partita/tensor.hpp"
#include "partita/types.hpp"
