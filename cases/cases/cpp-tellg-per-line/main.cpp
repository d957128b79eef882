// Notes where each line begins.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

int main(int, char **argv) {
    bool sick = std::string(argv[1]) == "sick";
    long total = 0;
    for (int i = 0, n = std::atoi(argv[2]); i < n; i++) {
        std::ifstream in("main.cpp");
        long at = 0;
        for (std::string line; std::getline(in, line);) {
            at = sick && !in.eof() ? (long)in.tellg() : at + (long)line.size() + 1;
            total += at;
        }
    }
    std::cout << total << '\n';
}
