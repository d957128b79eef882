// Sizes each batch by the number of processors.
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

int main(int, char **argv) {
    bool sick = std::string(argv[1]) == "sick";
    unsigned long total = 0;
    unsigned known = std::thread::hardware_concurrency();
    for (int i = 0, n = std::atoi(argv[2]); i < n; i++)
        total += (sick ? std::thread::hardware_concurrency() : known) > 0;
    std::cout << total << '\n';
}
