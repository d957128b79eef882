// Imports upload rows; each must lie below the root, whatever its folder's name says.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace fs = std::filesystem;

class Importer {
public:
    explicit Importer(fs::path root) : root_(fs::canonical(root)) {}

    void row(const std::string &folder, const std::string &payload)
    {
        fs::path p = resolve(folder);
        if (p.native().compare(0, root_.native().size(), root_.native()) != 0)
            throw std::runtime_error("outside: " + folder);
        perFolder_[p.filename().string()] ^= digest(payload);
        rows_++;
    }

    void report() const
    {
        std::cout << rows_ << " rows\n";
        for (auto &[f, d] : perFolder_)
            std::cout << f << " " << std::hex << d << std::dec << "\n";
    }

private:
    fs::path resolve(const std::string &folder)
    {
        return fs::canonical(root_ / folder);
    }

    static unsigned long digest(const std::string &s)
    {
        unsigned long h = 1469598103934665603UL;
        for (int round = 0; round < 600; round++)
            for (unsigned char c : s)
                h = (h ^ c) * 1099511628211UL;
        return h;
    }

    fs::path root_;
    std::unordered_map<std::string, fs::path> known_;
    std::map<std::string, unsigned long> perFolder_;
    long rows_ = 0;
};

int main()
{
    const char *folders[] = {"mail", "mail/in", "mail/../fax", "fax/out", "scan", "scan/raw"};
    for (auto f : {"mail/in", "fax/out", "scan/raw"})
        fs::create_directories(fs::path("uploads") / f);
    {
        Importer imp("uploads");
        for (int i = 0; i < 6000; i++)
            imp.row(folders[i % 6], "row " + std::to_string(i) + " of a rather ordinary upload with several fields;a;b;c;" + std::to_string(i * 7919));
        imp.report();
    }
    fs::remove_all("uploads");
}
