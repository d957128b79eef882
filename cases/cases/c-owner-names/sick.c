/* usage: sums sizes by owner of a listing, as a quota report does */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

struct entry { unsigned uid; unsigned size; char name[64]; };
struct owner { char name[32]; unsigned long bytes, hash; };

static struct owner owners[16];
static int n_owners;

static const char *owner_name(unsigned uid)
{
    struct passwd *p = getpwuid(uid);
    return p ? p->pw_name : "?";
}

static struct owner *find(const char *name)
{
    for (int i = 0; i < n_owners; i++)
        if (!strcmp(owners[i].name, name))
            return &owners[i];
    snprintf(owners[n_owners].name, sizeof owners[0].name, "%s", name);
    return &owners[n_owners++];
}

static unsigned long digest(const struct entry *e)
{
    unsigned long h = 14695981039346656037UL;
    for (int round = 0; round < 4000; round++)
        for (const char *p = e->name; *p; p++)
            h = (h ^ (unsigned char)*p) * 1099511628211UL;
    return h;
}

int main(void)
{
    for (int i = 0; i < 6000; i++) {
        struct entry e = { i % 5, (unsigned)i * 37 % 100000, "" };
        snprintf(e.name, sizeof e.name, "home/file-%d.dat", i);
        struct owner *o = find(owner_name(e.uid));
        o->bytes += e.size;
        o->hash ^= digest(&e);
    }
    for (int i = 0; i < n_owners; i++)
        printf("%-8s %10lu %016lx\n", owners[i].name, owners[i].bytes, owners[i].hash);
    return 0;
}
