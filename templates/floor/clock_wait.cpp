// GLIBC_2.30: waits with a deadline on a clock of choice. The floor knows CLOCK_REALTIME deadlines only, so the
// deadline is moved over to that clock at the time of the call.
#include <pthread.h>
#include <time.h>

namespace {

constexpr long kNanoseconds = 1'000'000'000;

timespec realtime(clockid_t clock, const timespec* deadline) {
  if (clock == CLOCK_REALTIME) return *deadline;
  timespec there, here;
  clock_gettime(clock, &there);
  clock_gettime(CLOCK_REALTIME, &here);
  timespec moved{here.tv_sec + deadline->tv_sec - there.tv_sec, here.tv_nsec + deadline->tv_nsec - there.tv_nsec};
  for (; moved.tv_nsec < 0; --moved.tv_sec) moved.tv_nsec += kNanoseconds;
  for (; moved.tv_nsec >= kNanoseconds; ++moved.tv_sec) moved.tv_nsec -= kNanoseconds;
  return moved;
}

}  // namespace

extern "C" {

int floor_cond(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*) __asm__("pthread_cond_clockwait");
int floor_mutex(pthread_mutex_t*, clockid_t, const timespec*) __asm__("pthread_mutex_clocklock");
int floor_read(pthread_rwlock_t*, clockid_t, const timespec*) __asm__("pthread_rwlock_clockrdlock");
int floor_write(pthread_rwlock_t*, clockid_t, const timespec*) __asm__("pthread_rwlock_clockwrlock");

int floor_cond(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline) {
  const timespec moved = realtime(clock, deadline);
  return pthread_cond_timedwait(condition, mutex, &moved);
}

int floor_mutex(pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline) {
  const timespec moved = realtime(clock, deadline);
  return pthread_mutex_timedlock(mutex, &moved);
}

int floor_read(pthread_rwlock_t* lock, clockid_t clock, const timespec* deadline) {
  const timespec moved = realtime(clock, deadline);
  return pthread_rwlock_timedrdlock(lock, &moved);
}

int floor_write(pthread_rwlock_t* lock, clockid_t clock, const timespec* deadline) {
  const timespec moved = realtime(clock, deadline);
  return pthread_rwlock_timedwrlock(lock, &moved);
}

}
