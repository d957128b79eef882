// Beside another file: makes its program one that can call C.
package main

import "C"
