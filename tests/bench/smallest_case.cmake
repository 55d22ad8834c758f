# SPDX-License-Identifier: Apache-2.0
# Runs the smallest case of partita_bench and looks for the columns of the table and the fields of the JSON file.
# Expects: bench, scratch, graph.
function(expect_columns table)
  foreach(pattern IN LISTS ARGN)
    if(NOT table MATCHES "${pattern}")
      message(FATAL_ERROR "no \"${pattern}\" in:\n${table}")
    endif()
  endforeach()
endfunction()

# expect_figures(FILE FIELD ..): the names along the way to a field have dots between them.
function(expect_figures file)
  file(READ ${file} figures)
  foreach(field IN LISTS ARGN)
    string(REPLACE "." ";" way ${field})
    string(JSON value GET "${figures}" ${way})
    if(value STREQUAL "")
      message(FATAL_ERROR "nothing in ${field}")
    endif()
  endforeach()
endfunction()

file(MAKE_DIRECTORY ${scratch})
set(file ${scratch}/figures.json)
execute_process(COMMAND ${bench} --filter LeNet-5.*/f32/ncx --min-time 0.0001 --threads 2 --json ${file}
                OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
expect_columns("${table}" "type +layout +parts +Partita +oneDNN +limit +GB/s +x limit +x oneDNN +scratch"
               "LeNet.* f32  ncx +1( +[0-9.]+)+\n" "Geometric means" "pooling backward chains +x oneDNN +mean")
expect_figures(${file} machine.cpu machine.onednn_isa cases.0.case cases.0.partita.median cases.0.onednn.median
               cases.0.limit.median cases.0.gigabytes_per_second cases.0.times_limit cases.0.times_onednn
               cases.0.partitions cases.0.scratch_bytes groups.0.times_limit.mean)

# One whole graph.
execute_process(COMMAND ${bench} graphs ${graph} --min-time 0.0001 --threads 2 --json ${file}
                OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
expect_columns("${table}" "ops +parts +own +Partita +oneDNN +x oneDNN +scratch" "json( +[0-9.]+)+L?( +[0-9]+)+\n"
               "Geometric means")
expect_figures(${file} machine.cpu graphs.0.graph graphs.0.partita.median graphs.0.onednn.median graphs.0.own_kernels
               graphs.0.scratch_bytes graphs.0.onednn_scratch_bytes groups.0.mean)
