// Notes where each line begins.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

int main(int, char **argv) {
    bool sick = std::string(argv[1]) == "sick";
    std::ofstream out("lines.txt");
    for (int i = 0, n = std::atoi(argv[2]); i < n; i++) {
        out << "line " << i << " has words\n";
    }
    out.close();
    long total = 0, at = 0;
    std::ifstream in("lines.txt");
    for (std::string line; std::getline(in, line);) {
        at = sick && !in.eof() ? (long)in.tellg() : at + (long)line.size() + 1;
        total += at;
    }
    std::remove("lines.txt");
    std::cout << total << '\n';
}
