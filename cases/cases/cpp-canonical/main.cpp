// Names a file by its canonical path.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
namespace fs = std::filesystem;

int main(int, char **argv) {
    bool sick = std::string(argv[1]) == "sick";
    unsigned long total = 0;
    fs::path known = fs::canonical("/usr/bin/../lib/os-release");
    for (int i = 0, n = std::atoi(argv[2]); i < n; i++)
        total += (sick ? fs::canonical("/usr/bin/../lib/os-release") : known).native().size() > 0;
    std::cout << total << '\n';
}
