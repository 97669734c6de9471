# gdb -x block_sum.gdb PROGRAM: stops in one thread of a kernel. PROGRAM was compiled with -O0 -g3.
set pagination off
set debuginfod enabled off
handle SIGUSR2 nostop noprint nopass
tbreak main
run
set variable interpreter::options().workers = 1
break block_sum.cpp:9 if threadIdx.x == 5 && blockIdx.x == 1
continue
print threadIdx.x
print t
print blockDim
next
print sums[t]
