// Prints a table.
#include <cstdlib>
#include <iostream>
#include <string>

int main(int, char **argv) {
    bool sick = std::string(argv[1]) == "sick";
    for (int i = 0, n = std::atoi(argv[2]); i < n; i++) {
        std::cout << i << ' ' << i * 2;
        if (sick)
            std::cout << std::endl;
        else
            std::cout << '\n';
    }
}
