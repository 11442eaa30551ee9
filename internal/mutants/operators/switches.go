package operators

import "fmt"

// variable is the environment variable that holds the ID of the mutant in force.
const variable = "NUMATHROTTLE_MUTANT"

// recordVariable is the environment variable that names a file for the IDs of the mutants whose places are reached.
const recordVariable = "NUMATHROTTLE_MUTANTS_REACHED"

// switches is a file of each package that has mutants.
func switches(pkg string) string { return fmt.Sprintf(switchesFile, pkg, variable, recordVariable) }

const switchesFile = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var mutantInForce, _ = strconv.Atoi(os.Getenv(%q))

var (
	mutantRecord  = os.Getenv(%q)
	mutantReached [1 << 15]atomic.Bool
)

func mutant(id int) bool {
	if mutantRecord == "" {
		return mutantInForce == id
	}
	if !mutantReached[id].Load() && !mutantReached[id].Swap(true) {
		file, err := os.OpenFile(mutantRecord, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		if _, err := file.WriteString(strconv.Itoa(id) + "\n"); err != nil {
			panic(err)
		}
		if err := file.Close(); err != nil {
			panic(err)
		}
	}
	return false
}

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
