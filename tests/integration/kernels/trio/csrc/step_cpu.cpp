#include "step.h"

void step(const float* x, float* y, long long n, const kb::Stream&) {
  for (long long i = 0; i < n; ++i) y[i] = (x[i] + 1) * 2;
}
