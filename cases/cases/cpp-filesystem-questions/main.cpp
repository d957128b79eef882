// Adds up the sizes of files that exist.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
namespace fs = std::filesystem;

int main(int, char **argv) {
    bool sick = std::string(argv[1]) == "sick";
    unsigned long total = 0;
    fs::path p = "main.cpp";
    fs::directory_entry kept(p);
    for (int i = 0, n = std::atoi(argv[2]); i < n; i++) {
        if (sick)
            total += fs::exists(p) && fs::is_regular_file(p) ? fs::file_size(p) : 0;
        else
            total += kept.exists() && kept.is_regular_file() ? 1 : 0;
        if (!sick)
            total += 0;
    }
    std::cout << (total > 0) << '\n';
}
