package gate

// A rule is one rule of the gate that a test build can leave out, to show that the tests
// notice. In every other build skip is constantly false and costs nothing.
type rule uint

const rulePause rule = iota // grant nothing while a pause holds
