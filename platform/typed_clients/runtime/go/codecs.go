// Checks of values, and their form in JSON, as Penstock's ingest takes them. Decimals, times and ids are texts.

package PACKAGE

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// UUID is the text of a UUID.
type UUID string

// Decimal is the text of a decimal, such as 12.50.
type Decimal string

// Date is the text of a date, such as 2026-11-25.
type Date string

// TimeOfDay is the text of a time of day, such as 08:00:00.123.
type TimeOfDay string

// InvalidValueError says that a value does not fit its type.
type InvalidValueError struct {
	Reason  string // what is needed
	Pointer string // JSON pointer to the value
}

func (e *InvalidValueError) Error() string {
	if e.Pointer == "" {
		return e.Reason
	}
	return e.Pointer + ": " + e.Reason
}

func invalid(format string, parts ...any) error {
	reason := fmt.Sprintf(format, parts...)
	return &InvalidValueError{Reason: reason[:min(len(reason), 200)]}
}

func below(name string, err error) error {
	var found *InvalidValueError
	if !errors.As(err, &found) {
		return err
	}
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return &InvalidValueError{Reason: found.Reason, Pointer: "/" + escaped + found.Pointer}
}

// codec turns values of a type into JSON (maps, slices, texts, booleans, numbers) and back.
type codec[T any] struct {
	encode func(T) (any, error)
	decode func(any) (T, error)
}

func marshal(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, invalid("needs JSON: %v", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func unmarshal(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var found any
	if err := decoder.Decode(&found); err != nil {
		return nil, invalid("needs JSON: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("needs one JSON value")
	}
	return found, nil
}

type objectWriter struct {
	fields map[string]any
	err    error
}

func newObject() *objectWriter {
	return &objectWriter{fields: map[string]any{}}
}

func put[T any](w *objectWriter, name string, c codec[T], isOptional bool, value T) {
	if w.err != nil {
		return
	}
	found, err := c.encode(value)
	if err != nil {
		w.err = below(name, err)
	} else if found != nil || !isOptional {
		w.fields[name] = found
	}
}

func (w *objectWriter) done() (any, error) {
	return w.fields, w.err
}

type objectReader struct {
	fields map[string]any
	err    error
}

func readObject(value any) *objectReader {
	fields, isObject := value.(map[string]any)
	if !isObject {
		return &objectReader{err: invalid("needs an object")}
	}
	return &objectReader{fields: fields}
}

func take[T any](r *objectReader, name string, c codec[T], isOptional bool, into *T) {
	if r.err != nil {
		return
	}
	value, isThere := r.fields[name]
	if isOptional && value == nil {
		return
	}
	if !isThere {
		r.err = below(name, invalid("is required, but missing"))
		return
	}
	found, err := c.decode(value)
	if err != nil {
		r.err = below(name, err)
		return
	}
	*into = found
}

func nothing() codec[any] {
	check := func(value any) (any, error) {
		if value != nil {
			return nil, invalid("needs null")
		}
		return nil, nil
	}
	return codec[any]{check, check}
}

func boolean() codec[bool] {
	return codec[bool]{
		func(value bool) (any, error) { return value, nil },
		func(value any) (bool, error) {
			found, isBool := value.(bool)
			if !isBool {
				return false, invalid("needs a boolean")
			}
			return found, nil
		},
	}
}

func int32Codec() codec[int32] {
	wide := int64Codec(math.MinInt32, math.MaxInt32)
	return codec[int32]{
		func(value int32) (any, error) { return value, nil },
		func(value any) (int32, error) {
			found, err := wide.decode(value)
			return int32(found), err
		},
	}
}

// int64Codec takes whole numbers, both limits included.
func int64Codec(low, high int64) codec[int64] {
	check := func(value int64) error {
		if value < low || value > high {
			return invalid("needs a whole number of %d to %d", low, high)
		}
		return nil
	}
	return codec[int64]{
		func(value int64) (any, error) { return value, check(value) },
		func(value any) (int64, error) {
			found, isWhole := whole(value)
			if !isWhole {
				return 0, invalid("needs a whole number of %d to %d", low, high)
			}
			return found, check(found)
		},
	}
}

func whole(value any) (int64, bool) {
	number, isNumber := value.(json.Number)
	if !isNumber {
		return 0, false
	}
	if found, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
		return found, true
	}
	found, err := number.Float64() // 1.0 and 1e3 are whole numbers, too
	if err != nil || found != math.Trunc(found) || math.Abs(found) > 1<<53 {
		return 0, false
	}
	return int64(found), true
}

func float32Codec() codec[float32] {
	wide := floating(32, false)
	return codec[float32]{
		func(value float32) (any, error) {
			if double := float64(value); math.IsNaN(double) || math.IsInf(double, 0) {
				return wide.encode(double)
			}
			return value, nil
		},
		func(value any) (float32, error) {
			found, err := wide.decode(value)
			return float32(found), err
		},
	}
}

// floating takes floating-point numbers of so many bits; finite ones are not NaN or infinite.
func floating(bits int, isFinite bool) codec[float64] {
	named := map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}
	return codec[float64]{
		func(value float64) (any, error) {
			if !math.IsNaN(value) && !math.IsInf(value, 0) {
				return value, nil
			}
			if isFinite {
				return nil, invalid("needs a finite number")
			}
			if math.IsNaN(value) {
				return "NaN", nil
			}
			return map[bool]string{true: "Infinity", false: "-Infinity"}[value > 0], nil
		},
		func(value any) (float64, error) {
			if text, isText := value.(string); isText && !isFinite {
				if found, isNamed := named[text]; isNamed {
					return found, nil
				}
			}
			number, isNumber := value.(json.Number)
			if !isNumber {
				return 0, invalid("needs a number")
			}
			found, err := strconv.ParseFloat(number.String(), bits)
			if err != nil {
				return 0, invalid("needs a number in the range of its type")
			}
			return found, nil
		},
	}
}

func checkSize(size, low, high int, unit string) error {
	if low >= 0 && size < low {
		return invalid("needs at least %d %s, got %d", low, unit, size)
	}
	if high >= 0 && size > high {
		return invalid("needs at most %d %s, got %d", high, unit, size)
	}
	return nil
}

// texts returns a codec of texts with a check.
func texts[T ~string](check func(string) error) codec[T] {
	return codec[T]{
		func(value T) (any, error) { return string(value), check(string(value)) },
		func(value any) (T, error) {
			found, isText := value.(string)
			if !isText {
				return "", invalid("needs a text")
			}
			return T(found), check(found)
		},
	}
}

// text takes texts; a limit of -1 is none.
func text(low, high int) codec[string] {
	return texts[string](func(value string) error {
		if !utf8.ValidString(value) {
			return invalid("needs valid UTF-8")
		}
		return checkSize(utf8.RuneCountInString(value), low, high, "characters")
	})
}

// octets takes bytes: in JSON, one character for each byte.
func octets(low, high int) codec[[]byte] {
	return codec[[]byte]{
		func(value []byte) (any, error) {
			found := make([]rune, len(value))
			for place, one := range value {
				found[place] = rune(one)
			}
			return string(found), checkSize(len(value), low, high, "bytes")
		},
		func(value any) ([]byte, error) {
			text, isText := value.(string)
			found := make([]byte, 0, len(text))
			for _, one := range text {
				isText = isText && one <= 0xFF
				found = append(found, byte(one))
			}
			if !isText {
				return nil, invalid("needs a text with one character for each byte")
			}
			return found, checkSize(len(found), low, high, "bytes")
		},
	}
}

var uuidText = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isUUID(text string) bool {
	return uuidText.MatchString(text)
}

func uniqueID() codec[UUID] {
	return texts[UUID](func(value string) error {
		if !isUUID(value) {
			return invalid("needs a UUID")
		}
		return nil
	})
}

func timeUUID() codec[TimeUUID] {
	return codec[TimeUUID]{
		func(value TimeUUID) (any, error) {
			if err := value.check(); err != nil {
				return nil, invalid("%v", err)
			}
			return value.String(), nil
		},
		func(value any) (TimeUUID, error) {
			text, _ := value.(string)
			found, err := ParseTimeUUID(text)
			if err != nil {
				return found, invalid("%v", err)
			}
			return found, nil
		},
	}
}

var decimalText = regexp.MustCompile(`^[+-]?(\d*)(?:\.(\d*))?$`)

// decimal takes numbers with `scale` digits after the point and `precision` digits in total.
func decimal(precision, scale int) codec[Decimal] {
	check := func(value string) error {
		parts := decimalText.FindStringSubmatch(value)
		if parts == nil || parts[1]+parts[2] == "" {
			return invalid("needs a number as text, such as 12.50")
		}
		if len(strings.TrimLeft(parts[1], "0")) > precision-scale {
			return invalid("needs at most %d digits before the point", precision-scale)
		}
		if len(strings.TrimRight(parts[2], "0")) > scale {
			return invalid("needs at most %d digits after the point", scale)
		}
		return nil
	}
	found := texts[Decimal](check)
	return codec[Decimal]{found.encode, func(value any) (Decimal, error) {
		if number, isNumber := value.(json.Number); isNumber {
			value = number.String()
		}
		return found.decode(value)
	}}
}

// NewDecimal returns a number as a decimal with so many digits after the point.
func NewDecimal(value *big.Rat, scale int) Decimal {
	return Decimal(value.FloatString(scale))
}

const (
	wallClock = "2006-01-02T15:04:05"
	dayOnly   = "2006-01-02"
	timeOnly  = "15:04:05"

	nanoseconds = 9 // digits after the second
)

// timestamp takes moments with up to `digits` digits after the second.
func timestamp(digits int) codec[time.Time] {
	return moments(digits, "Z", time.RFC3339Nano)
}

// localTimestamp takes moments without a zone: the date and the time of the value count, and not its location.
func localTimestamp(digits int) codec[time.Time] {
	return moments(digits, "", wallClock+".999999999")
}

func moments(digits int, zone, layout string) codec[time.Time] {
	return codec[time.Time]{
		func(value time.Time) (any, error) {
			if zone != "" {
				value = value.UTC()
			}
			if value.Year() < 1 || value.Year() > 9999 {
				return nil, invalid("needs a year of 1 to 9999")
			}
			if digits == nanoseconds && (value.Year() < 1678 || value.Year() > 2261) {
				return nil, invalid("needs a year of 1678 to 2261, because it is counted in nanoseconds")
			}
			fraction, err := fractionOf(value.Nanosecond(), digits)
			return value.Format(wallClock) + fraction + zone, err
		},
		func(value any) (time.Time, error) {
			if count, isWhole := whole(value); isWhole {
				return momentOf(count, digits), nil
			}
			text, _ := value.(string)
			found, err := time.Parse(layout, strings.ToUpper(strings.Replace(text, " ", "T", 1)))
			if err != nil {
				return found, invalid("needs a time as of RFC 3339, such as 2026-11-25T08:00:00.123%s", zone)
			}
			return found, nil
		},
	}
}

func momentOf(count int64, digits int) time.Time {
	units := power(digits)
	seconds, rest := count/units, count%units
	return time.Unix(seconds, rest*(1_000_000_000/units)).UTC()
}

func power(digits int) int64 {
	found := int64(1)
	for range digits {
		found *= 10
	}
	return found
}

func fractionOf(nanos, digits int) (string, error) {
	unit := 1_000_000_000 / int(power(digits))
	if nanos%unit != 0 {
		return "", invalid("needs at most %d digits after the second; use Truncate", digits)
	}
	if nanos == 0 {
		return "", nil
	}
	return fmt.Sprintf(".%0*d", digits, nanos/unit), nil
}

func day() codec[Date] {
	found := texts[Date](func(value string) error {
		if _, err := time.Parse(dayOnly, value); err != nil {
			return invalid("needs a date, such as 2026-11-25")
		}
		return nil
	})
	return codec[Date]{found.encode, func(value any) (Date, error) {
		if count, isWhole := whole(value); isWhole {
			value = time.Unix(0, 0).UTC().AddDate(0, 0, int(count)).Format(dayOnly)
		}
		return found.decode(value)
	}}
}

func timeOfDay(digits int) codec[TimeOfDay] {
	found := texts[TimeOfDay](func(value string) error {
		moment, err := time.Parse(timeOnly+".999999999", value)
		if err != nil {
			return invalid("needs a time of day, such as 08:00:00.123")
		}
		_, err = fractionOf(moment.Nanosecond(), digits)
		return err
	})
	return codec[TimeOfDay]{found.encode, func(value any) (TimeOfDay, error) {
		if count, isWhole := whole(value); isWhole && count >= 0 && count < 86_400*power(digits) {
			moment := momentOf(count, digits)
			fraction, err := fractionOf(moment.Nanosecond(), digits)
			return TimeOfDay(moment.Format(timeOnly) + fraction), err
		}
		return found.decode(value)
	}}
}

// anyJSON takes any JSON; its numbers are json.Number when they are received.
func anyJSON() codec[any] {
	return codec[any]{
		func(value any) (any, error) {
			text, err := marshal(value)
			if err != nil {
				return nil, err
			}
			return json.RawMessage(text), nil
		},
		func(value any) (any, error) { return value, nil },
	}
}

// oneOf takes the symbols of an enum.
func oneOf[T ~string](symbols ...T) codec[T] {
	return texts[T](func(value string) error {
		names := make([]string, len(symbols))
		for place, one := range symbols {
			if string(one) == value {
				return nil
			}
			names[place] = string(one)
		}
		return invalid("needs one of %s", strings.Join(names, ", "))
	})
}

// list takes slices; a limit of -1 is none.
func list[T any](item codec[T], low, high int) codec[[]T] {
	return codec[[]T]{
		func(value []T) (any, error) {
			found := make([]any, len(value))
			for place, one := range value {
				encoded, err := item.encode(one)
				if err != nil {
					return nil, below(strconv.Itoa(place), err)
				}
				found[place] = encoded
			}
			return found, checkSize(len(value), low, high, "items")
		},
		func(value any) ([]T, error) {
			given, isList := value.([]any)
			if !isList {
				return nil, invalid("needs a list")
			}
			found := make([]T, len(given))
			for place, one := range given {
				decoded, err := item.decode(one)
				if err != nil {
					return nil, below(strconv.Itoa(place), err)
				}
				found[place] = decoded
			}
			return found, checkSize(len(given), low, high, "items")
		},
	}
}

// mapping takes values by text.
func mapping[T any](item codec[T]) codec[map[string]T] {
	return codec[map[string]T]{
		func(value map[string]T) (any, error) {
			found := make(map[string]any, len(value))
			for name, one := range value {
				encoded, err := item.encode(one)
				if err != nil {
					return nil, below(name, err)
				}
				found[name] = encoded
			}
			return found, nil
		},
		func(value any) (map[string]T, error) {
			given, isMap := value.(map[string]any)
			if !isMap {
				return nil, invalid("needs an object")
			}
			found := make(map[string]T, len(given))
			for name, one := range given {
				decoded, err := item.decode(one)
				if err != nil {
					return nil, below(name, err)
				}
				found[name] = decoded
			}
			return found, nil
		},
	}
}

// pointer takes a type that also has null, as nil.
func pointer[T any](item codec[T]) codec[*T] {
	return codec[*T]{
		func(value *T) (any, error) {
			if value == nil {
				return nil, nil
			}
			return item.encode(*value)
		},
		func(value any) (*T, error) {
			if value == nil {
				return nil, nil
			}
			found, err := item.decode(value)
			return &found, err
		},
	}
}

// nilList takes a slice that may be null.
func nilList[T any](item codec[[]T]) codec[[]T] {
	return nilable(item, func(value []T) bool { return value == nil })
}

// nilMap takes a map that may be null.
func nilMap[T any](item codec[map[string]T]) codec[map[string]T] {
	return nilable(item, func(value map[string]T) bool { return value == nil })
}

// nilAny takes a value of any type that may be null.
func nilAny(item codec[any]) codec[any] {
	return nilable(item, func(value any) bool { return value == nil })
}

func nilable[T any](item codec[T], isNil func(T) bool) codec[T] {
	return codec[T]{
		func(value T) (any, error) {
			if isNil(value) {
				return nil, nil
			}
			return item.encode(value)
		},
		func(value any) (T, error) {
			if value == nil {
				var none T
				return none, nil
			}
			return item.decode(value)
		},
	}
}

type branchCodec struct {
	label  string
	encode func(any) (any, error)
	decode func(any) (any, error)
}

func branch[T any](label string, item codec[T]) branchCodec {
	return branchCodec{
		label,
		func(value any) (any, error) {
			given, isOfType := value.(T)
			if !isOfType {
				return nil, invalid("needs a value of another type")
			}
			return item.encode(given)
		},
		func(value any) (any, error) { return item.decode(value) },
	}
}

// union takes a value of the first branch that accepts it. In JSON it is {"<branch>": value} if it could be taken for an
// earlier branch, else the value.
func union(branches ...branchCodec) codec[any] {
	return codec[any]{
		func(value any) (any, error) {
			for place, one := range branches {
				if found, err := one.encode(value); err == nil {
					isTaken, err := isAmbiguous(found, branches, place)
					if isTaken {
						found = map[string]any{one.label: found}
					}
					return found, err
				}
			}
			return nil, needed(branches)
		},
		func(value any) (any, error) {
			if label, inner := labelled(value, branches); label >= 0 {
				found, err := branches[label].decode(inner)
				if err != nil {
					return nil, below(branches[label].label, err)
				}
				return found, nil
			}
			for _, one := range branches {
				if found, err := one.decode(value); err == nil {
					return found, nil
				}
			}
			return nil, needed(branches)
		},
	}
}

func isAmbiguous(found any, branches []branchCodec, place int) (bool, error) {
	text, err := marshal(found)
	if err != nil {
		return false, err
	}
	readable, err := unmarshal(text)
	if err != nil {
		return false, err
	}
	if label, _ := labelled(readable, branches); label >= 0 {
		return true, nil
	}
	for _, one := range branches[:place] {
		if _, err := one.decode(readable); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// labelled returns the branch that an object with a single field names, and its value; -1 if it names none.
func labelled(value any, branches []branchCodec) (int, any) {
	given, isMap := value.(map[string]any)
	if isMap && len(given) == 1 {
		for place, one := range branches {
			if inner, isNamed := given[one.label]; isNamed {
				return place, inner
			}
		}
	}
	return -1, nil
}

func needed(branches []branchCodec) error {
	labels := make([]string, len(branches))
	for place, one := range branches {
		labels[place] = one.label
	}
	return invalid("needs a value of %s", strings.Join(labels, ", "))
}
