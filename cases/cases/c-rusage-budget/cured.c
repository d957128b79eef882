#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

/* A rule interpreter: scripts may not burn more CPU time than their budget. */
struct op { uint8_t code, a, b, c; };
enum { ADD, MUL, XOR, ROT, LOAD, STORE, JNZ, DEC, HALT };
struct vm { uint64_t r[16]; uint64_t mem[256]; uint64_t steps; double budget; };

static double cpu_used(void) {
    struct rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    return ru.ru_utime.tv_sec + ru.ru_utime.tv_usec / 1e6 + ru.ru_stime.tv_sec + ru.ru_stime.tv_usec / 1e6;
}

static int over_budget(struct vm *vm) { return cpu_used() > vm->budget; }

static int run(struct vm *vm, const struct op *code) {
    const struct op *pc = code;
    unsigned loops = 0;
    for (;;) {
        const struct op o = *pc++;
        vm->steps++;
        switch (o.code) {
        case ADD: vm->r[o.a] = vm->r[o.b] + vm->r[o.c]; break;
        case MUL: vm->r[o.a] = vm->r[o.b] * (vm->r[o.c] | 1); break;
        case XOR: vm->r[o.a] = vm->r[o.b] ^ vm->r[o.c]; break;
        case ROT: vm->r[o.a] = vm->r[o.b] << 7 | vm->r[o.b] >> 57; break;
        case LOAD: vm->r[o.a] = vm->mem[(uint8_t)vm->r[o.b]]; break;
        case STORE: vm->mem[(uint8_t)vm->r[o.b]] = vm->r[o.a]; break;
        case DEC: vm->r[o.a]--; break;
        case JNZ:
            if (vm->r[o.a]) {
                pc = code + o.b;
                if (o.c && (++loops & 4095) == 0 && over_budget(vm)) return -1;
            }
            break;
        case HALT: (void)loops; return 0;
        }
    }
}

int main(void) {
    struct vm vm = { .budget = 10.0 };
    struct op code[] = {
        { ADD, 9, 10, 10 },                    /* inner counter := 2 * r10 */
        { MUL, 1, 1, 2 }, { ROT, 2, 1, 0 }, { XOR, 3, 3, 2 }, { LOAD, 4, 3, 0 }, { ADD, 4, 4, 1 }, { STORE, 4, 3, 0 },
        { DEC, 9, 0, 0 }, { JNZ, 9, 1, 0 },
        { DEC, 8, 0, 0 }, { JNZ, 8, 0, 1 }, { HALT, 0, 0, 0 } };
    for (int rule = 0; rule < 20; rule++) {
        vm.r[1] = 0x9e3779b97f4a7c15u + rule; vm.r[2] = rule; vm.r[3] = 1; vm.r[8] = 2500; vm.r[10] = 150;
        if (run(&vm, code)) { fprintf(stderr, "rule %d: over budget\n", rule); return 1; }
        printf("rule %d: %016llx\n", rule, (unsigned long long)vm.r[3]);
    }
    printf("%llu steps\n", (unsigned long long)vm.steps);
}
