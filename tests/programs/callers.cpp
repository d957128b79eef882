#include <string>
#include <vector>
#include <unistd.h>
#include <sys/stat.h>
struct Reader { __attribute__((noinline)) int look(const std::string &p) const { struct stat s; return stat(p.c_str(), &s); } };
template <class T> __attribute__((noinline)) int twice(const T &t, const std::string &p) { return t.look(p) + t.look(p); }
__attribute__((noinline)) int one(const Reader &r) { int n = 0; for (int i = 0; i < 200; i++) n += twice(r, "/etc"); return n + 1; }
__attribute__((noinline)) int another(const Reader &r) { int n = 0; for (int i = 0; i < 300; i++) n += twice(r, "/"); return n + 2; }
int main() { Reader r; std::vector<int> v{one(r), another(r)}; return v[0] + v[1] == 3 ? 0 : 1; }
