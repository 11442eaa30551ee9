package operators

import "fmt"

// variable is the environment variable that holds the ID of the mutant in force.
const variable = "NUMATHROTTLE_MUTANT"

// switches is a file of each package that has mutants.
func switches(pkg string) string { return fmt.Sprintf(switchesFile, pkg, variable) }

const switchesFile = `package %s

import (
	"os"
	"strconv"
)

var mutantInForce, _ = strconv.Atoi(os.Getenv(%q))

func mutant(id int) bool { return mutantInForce == id }

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutantAdd[T mutantNumber](id int, a, b T) T {
	if mutant(id) {
		return a - b
	}
	return a + b
}

func mutantSub[T mutantNumber](id int, a, b T) T {
	if mutant(id) {
		return a + b
	}
	return a - b
}

func mutantMul[T mutantNumber](id int, a, b T) T {
	if mutant(id) {
		return a / b
	}
	return a * b
}

func mutantQuo[T mutantNumber](id int, a, b T) T {
	if mutant(id) {
		return a * b
	}
	return a / b
}

func mutantMin[T mutantNumber](id int, a T, more ...T) T {
	for _, b := range more {
		if mutant(id) {
			a = max(a, b)
		} else {
			a = min(a, b)
		}
	}
	return a
}

func mutantMax[T mutantNumber](id int, a T, more ...T) T {
	for _, b := range more {
		if mutant(id) {
			a = min(a, b)
		} else {
			a = max(a, b)
		}
	}
	return a
}
`
