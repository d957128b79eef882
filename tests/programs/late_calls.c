/* A library that makes its own system calls, for late_library. */
int calls(int n) {
  int made = 0;
  for (int i = 0; i < n; i++) {
    long result;
    /* The bytes behind it give way to a jump. */
    __asm__ volatile("movl $110, %%eax\n\tsyscall\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop" : "=a"(result) : : "rcx", "r11", "memory");
    made += result > 0;
  }
  return made;
}
