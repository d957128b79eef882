#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

struct Index { std::vector<uint64_t> at; };

// Runs of equal letters become a count and the letter; then a checksum that a reader checks.
static std::string pack(const std::string &s, uint32_t &sum) {
    std::string out;
    for (size_t i = 0; i < s.size();) {
        size_t j = i;
        while (j < s.size() && s[j] == s[i] && j - i < 255) j++;
        out += char(j - i); out += s[i];
        i = j;
    }
    for (int k = 0; k < 40; k++) for (unsigned char c : out) sum = (sum << 5 ^ sum >> 27) + c;
    return out;
}

int main() {
    std::ofstream out("records.dat", std::ios::binary);
    Index ix;
    uint32_t sum = 1; uint64_t x = 88172645463325252ull;
    for (int i = 0; i < 60000; i++) {
        std::string text;
        for (int k = 0; k < 25; k++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; text.append(1 + x % 9, 'a' + (x >> 20) % 26); }
        std::string p = pack(text, sum);
        ix.at.push_back(out.tellp());
        out.write(p.data(), p.size());
    }
    out.close();
    uint64_t mix = 0;
    for (uint64_t a : ix.at) mix = mix * 31 + a;
    printf("%zu records, last at %llu, index %016llx, sum %08x\n", ix.at.size(), (unsigned long long)ix.at.back(), (unsigned long long)mix, sum);
}
