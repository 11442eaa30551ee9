package cli

import (
	"encoding/json"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v3"
)

// The flags for the output format.
const (
	jsonName   = "json"
	outputName = "output"
)

// outputFlags returns the flags of a command that can print JSON, described by what.
func outputFlags(what string) []ucli.Flag {
	return []ucli.Flag{
		&ucli.BoolFlag{Name: jsonName, Usage: "print " + what},
		&ucli.StringFlag{Name: outputName, Aliases: []string{"o"}, Usage: "text or json: -o json is --json", DefaultText: "text"},
	}
}

// wantsJSON reports whether to print JSON.
func wantsJSON(cmd *ucli.Command) (bool, error) {
	switch output := cmd.String(outputName); {
	case output == jsonName:
		return true, nil
	case output == "text" && cmd.Bool(jsonName):
		return false, &kindError{fmt.Errorf("%s: --output is text, but --json is given", cmd.FullName()), errUsage}
	case output != "" && output != "text":
		return false, &kindError{fmt.Errorf("%s: --output is %.40q, allowed: text, json", cmd.FullName(), output), errUsage}
	}
	return cmd.Bool(jsonName), nil
}

func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printable returns a name from others in a form that cannot disturb a terminal.
func printable(name string) string {
	quoted := fmt.Sprintf("%q", name)
	if quoted == `"`+name+`"` {
		return name
	}
	return quoted
}
