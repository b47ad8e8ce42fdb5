// GLIBC_2.32. libstdc++'s headers read it to skip atomics; 0 means "there may be threads", which is always right.
extern "C" char __libc_single_threaded = 0;
