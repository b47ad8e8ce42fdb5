// GLIBC_2.33: stat and its family became functions; before, headers called versioned ones with these numbers.
struct floor_stat;

namespace {
constexpr int kStatVersion = 1;
constexpr int kMknodVersion = 0;
}

extern "C" {
int __xstat(int, const char*, floor_stat*);
int __fxstat(int, int, floor_stat*);
int __lxstat(int, const char*, floor_stat*);
int __fxstatat(int, int, const char*, floor_stat*, int);
int __xstat64(int, const char*, floor_stat*);
int __fxstat64(int, int, floor_stat*);
int __lxstat64(int, const char*, floor_stat*);
int __fxstatat64(int, int, const char*, floor_stat*, int);
int __xmknod(int, const char*, unsigned, unsigned long*);

int stat(const char* path, floor_stat* to) { return __xstat(kStatVersion, path, to); }
int fstat(int file, floor_stat* to) { return __fxstat(kStatVersion, file, to); }
int lstat(const char* path, floor_stat* to) { return __lxstat(kStatVersion, path, to); }
int fstatat(int folder, const char* path, floor_stat* to, int flags) {
  return __fxstatat(kStatVersion, folder, path, to, flags);
}
int stat64(const char* path, floor_stat* to) { return __xstat64(kStatVersion, path, to); }
int fstat64(int file, floor_stat* to) { return __fxstat64(kStatVersion, file, to); }
int lstat64(const char* path, floor_stat* to) { return __lxstat64(kStatVersion, path, to); }
int fstatat64(int folder, const char* path, floor_stat* to, int flags) {
  return __fxstatat64(kStatVersion, folder, path, to, flags);
}
int mknod(const char* path, unsigned mode, unsigned long device) {
  return __xmknod(kMknodVersion, path, mode, &device);
}
}
