/* SPDX-License-Identifier: Apache-2.0
 *
 * A process without libdnnl: graphs are built and partitioned, what needs an engine fails with a text.
 */
#include <stdio.h>
#include <string.h>

#include "partita/dnnl_graph.h"

int main(void) {
  dnnl_graph_graph_t graph = NULL;
  dnnl_graph_allocator_t allocator = NULL;
  dnnl_engine_t engine = NULL;
  if (dnnl_graph_graph_create(&graph, dnnl_cpu) != dnnl_success) return 1;
  if (dnnl_graph_graph_finalize(graph) != dnnl_success) return 2;
  if (dnnl_graph_graph_destroy(graph) != dnnl_success) return 3;
  if (dnnl_graph_allocator_create(&allocator, NULL, NULL) != dnnl_success) return 4;
  if (dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, allocator) != dnnl_runtime_error) return 5;
  if (strstr(partita_last_error(), "no libdnnl") == NULL) return 6;
  if (dnnl_graph_allocator_destroy(allocator) != dnnl_success) return 7;
  return 0;
}
