# Relocations keep the names of functions that nobody else can see, which are long: a tenth of libframework.a.
#     cmake -DNM= -DOBJCOPY= -DOBJECT= -P short_names.cmake
execute_process(COMMAND ${NM} ${OBJECT} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " [tdrb] _Z[^\n]+" names "${names}")
list(REMOVE_DUPLICATES names)
set(map "")
set(n 0)
foreach(name IN LISTS names)
  string(SUBSTRING "${name}" 3 -1 name)
  string(APPEND map "${name} ${n}\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OBJECT}.names "${map}")
execute_process(COMMAND ${OBJCOPY} --redefine-syms=${OBJECT}.names ${OBJECT} COMMAND_ERROR_IS_FATAL ANY)
