# SPDX-License-Identifier: Apache-2.0
# Installs Partita into an empty prefix, builds docs/examples against it as a user would, and runs them.
# Expects: build, examples, generator, compiler.
set(scratch ${build}/installed_package_test)
file(REMOVE_RECURSE ${scratch})

function(step)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=CMAKE_PREFIX_PATH ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

step(${CMAKE_COMMAND} --install ${build} --prefix ${scratch}/prefix)
step(${CMAKE_COMMAND} -G ${generator} -S ${examples} -B ${scratch}/examples -D CMAKE_BUILD_TYPE=Release
     -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${scratch}/prefix)
step(${CMAKE_COMMAND} --build ${scratch}/examples)
step(${CMAKE_CTEST_COMMAND} --test-dir ${scratch}/examples --output-on-failure --no-tests=error)
