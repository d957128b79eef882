#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <unordered_map>
namespace fs = std::filesystem;

class Cache {
    fs::path dir; std::ofstream file; std::unordered_map<std::string, uint64_t> map;
    uint64_t room = 0, refused = 0;
    bool fits(size_t n) {
        if (room < n + (64 << 20)) {
            auto s = fs::space(dir);
            room = s.available;
        }
        if (room < n + (64 << 20)) return false;
        room -= n;
        return true;
    }
public:
    explicit Cache(fs::path d) : dir(std::move(d)), file(dir / "cache.bin", std::ios::binary) {}
    void put(const std::string &key, const std::string &value) {
        uint64_t h = 14695981039346656037ull;
        for (int k = 0; k < 45; k++) for (unsigned char c : value) h = (h ^ c) * 1099511628211ull;
        if (!fits(value.size() + 16)) { refused++; return; }
        file.write(value.data(), value.size());
        map[key] = h;
    }
    void report() const {
        uint64_t all = 0;
        for (auto &[k, h] : map) all ^= h + k.size();
        printf("%zu entries, %llu refused, %016llx\n", map.size(), (unsigned long long)refused, (unsigned long long)all);
    }
};

int main() {
    Cache c(".");
    for (int i = 0; i < 45000; i++)
        c.put("user/" + std::to_string(i * 7919 % 45000), std::string(120 + i % 150, 'a' + i % 26) + std::to_string(i));
    c.report();
}
