/* Maps another program's code as a translator does, and looks whether it stays as its file has it:
 * after making memory to be written and run ("code-first"), before that ("code-later"), or without
 * ("plain"). Linked statically it has no loader of its own. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned char whole[16 << 20];

static int make_code(void)
{
    unsigned char *at = mmap(0, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 0;
    at[0] = 0xc3;
    ((void (*)(void))at)();
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 64;
    int fd = open(argv[2], O_RDONLY | O_CLOEXEC);
    ssize_t size = 0, got;
    while ((got = read(fd, whole + size, sizeof whole - size)) > 0)
        size += got;
    if (size < (ssize_t)sizeof(Elf64_Ehdr) || (!strcmp(argv[1], "code-first") && !make_code()))
        return 2;
    const Elf64_Ehdr *header = (void *)whole;
    const Elf64_Phdr *parts = (void *)(whole + header->e_phoff);
    size_t all = 0;
    for (int i = 0; i < header->e_phnum; i++)
        if (parts[i].p_type == PT_LOAD)
            all = parts[i].p_vaddr + parts[i].p_memsz;
    char *base = mmap(0, (all + 8191) & ~4095ul, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return 3;
    for (int i = 0; i < header->e_phnum; i++) {
        const Elf64_Phdr *p = parts + i;
        size_t before = p->p_vaddr & 4095;
        int how = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) | (p->p_flags & PF_X ? PROT_EXEC : 0);
        if (p->p_type == PT_LOAD && mmap(base + p->p_vaddr - before, p->p_filesz + before, how, MAP_PRIVATE | MAP_FIXED, fd, p->p_offset - before) == MAP_FAILED)
            return 4;
    }
    if (!strcmp(argv[1], "code-later") && !make_code())
        return 2;
    int same = 1;
    for (int i = 0; i < header->e_phnum; i++)
        if (parts[i].p_type == PT_LOAD && parts[i].p_flags & PF_X)
            same &= !memcmp(base + parts[i].p_vaddr, whole + parts[i].p_offset, parts[i].p_filesz);
    puts(same ? "as it was" : "changed");
    return !same;
}
