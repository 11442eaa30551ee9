package scenario

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// field returns a field of a struct by its path, in any case, or the result of its method of that name. The field left of a time.Time is the
// time until then, or never.
func field(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		if at, ok := reflect.TypeAssert[time.Time](v); ok && name == "left" {
			return left(at)
		}
		if m := v.MethodByName(strings.ToUpper(name[:1]) + name[1:]); m.IsValid() {
			v = m.Call(nil)[0]
			continue
		}
		if v = reflect.Indirect(v); v.Kind() == reflect.Struct {
			v = v.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
		}
	}
	return v
}

func left(at time.Time) reflect.Value {
	if at.IsZero() {
		return reflect.ValueOf("never")
	}
	return reflect.ValueOf(time.Until(at))
}

// Fill sets the fields of the struct at v that settings and words name: a bool by its name, a time.Time by the time from now, and a share as
// a fraction of the whole. of has the values of other types by the text of a setting.
func (o *Order) Fill(v any, of map[string]any) {
	for _, w := range slices.Clone(o.Words) {
		if f := field(reflect.ValueOf(v), w); f.IsValid() && f.Kind() == reflect.Bool && o.Is(w) {
			f.SetBool(true)
		}
	}
	for key := range o.Set {
		f := field(reflect.ValueOf(v), key)
		if !f.IsValid() {
			continue
		}
		value := o.Value(key)
		switch to := f.Addr().Interface().(type) {
		case *time.Duration:
			*to = o.Time(value)
		case *time.Time:
			*to = time.Now().Add(o.Time(value))
		default:
			if f.Kind() == reflect.Interface {
				require.Contains(o.T, of, value, "%s: %s", o.Line, key)
				f.Set(reflect.ValueOf(of[value]))
				continue
			}
			if isShare(key) {
				value = fmt.Sprint(Share(o.Number(value)))
			}
			_, err := fmt.Sscan(value, to)
			require.NoError(o.T, err, "%s: %s", o.Line, key)
		}
	}
}

// Share returns a fraction of the whole share.
func Share(fraction float64) int64 { return int64(fraction * float64(limit.WholeShare)) }

// isShare tells fields that are fractions of the whole share.
func isShare(name string) bool {
	return slices.Contains([]string{"share", "even", "demand", "want"}, strings.ToLower(name))
}

// Tell returns the fields of v that the words name, or all simple ones that are not zero.
func (o *Order) Tell(v any) string {
	var reported []string
	at := reflect.New(reflect.TypeOf(v))
	at.Elem().Set(reflect.ValueOf(v))
	paths := o.Rest()
	for _, path := range paths {
		f := field(at, path)
		require.True(o.T, f.IsValid(), "%s: no %s", o.Line, path)
		reported = append(reported, oneWord(path[strings.LastIndex(path, ".")+1:], f))
	}
	for f, is := range at.Elem().Fields() {
		if len(paths) == 0 && f.IsExported() && !is.IsZero() && is.Kind() != reflect.Struct && is.Kind() != reflect.Interface {
			reported = append(reported, strings.ToLower(f.Name)+"="+oneWord(f.Name, is))
		}
	}
	return strings.Join(reported, " ")
}

// TellIf is Tell, or none.
func (o *Order) TellIf(ok bool, v any) string {
	if !ok {
		o.Rest()
		return "none"
	}
	return o.Tell(v)
}

// oneWord returns a value as one word.
func oneWord(name string, v reflect.Value) string {
	if p, ok := reflect.TypeAssert[*limit.Paused](v); ok && p != nil {
		return time.Until(p.Until).Round(time.Microsecond).String()
	}
	d, isTime := reflect.TypeAssert[time.Duration](v)
	switch {
	case isTime:
		return d.Round(time.Microsecond).String()
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Interface && v.IsNil():
		return "none"
	case v.CanInt() && isShare(name):
		return strconv.FormatFloat(float64(v.Int())/float64(limit.WholeShare), 'f', -1, 64)
	case v.CanFloat():
		return Rounded(v.Float())
	}
	return cmp.Or(strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", "_"), "-")
}

// Rounded returns a number with three digits at most after the point.
func Rounded(f float64) string {
	return cmp.Or(strings.TrimRight(strings.TrimRight(strconv.FormatFloat(f, 'f', 3, 64), "0"), "."), "0")
}
