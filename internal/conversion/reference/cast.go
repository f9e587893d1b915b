// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func printInteger(value any) any {
	if number, isNumber := value.(json.Number); isNumber && isInteger(number.String()) {
		return number.String()
	}
	return none
}

func readInteger(value any) any {
	if text, isText := value.(string); isText && isInteger(text) {
		return json.Number(text)
	}
	return none
}

// printDuration formats a number of units as a Go duration, unless it overflows.
func printDuration(unit time.Duration) func(any) any {
	return func(value any) any {
		number, isNumber := value.(json.Number)
		if !isNumber || !isInteger(number.String()) {
			return none
		}
		count, err := number.Int64()
		duration := time.Duration(count) * unit
		if err != nil || int64(duration/unit) != count {
			return none
		}
		return duration.String()
	}
}

func readDuration(unit time.Duration) func(any) any {
	return func(value any) any {
		text, isText := value.(string)
		duration, err := time.ParseDuration(text)
		if !isText || err != nil || duration%unit != 0 {
			return none
		}
		return json.Number(big.NewInt(int64(duration / unit)).String())
	}
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// storedNumber returns a number as API servers store it.
func storedNumber(text string) any {
	if !jsonNumber.MatchString(text) {
		return none
	}
	if isInteger(text) {
		return text
	}
	float, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return none
	}
	if float == 0 {
		return "0"
	}
	written, err := json.Marshal(float)
	if err != nil {
		return none
	}
	return string(written)
}

func printNumber(value any) any {
	if number, isNumber := value.(json.Number); isNumber {
		return storedNumber(number.String())
	}
	return none
}

func readNumber(value any) any {
	if text, isText := value.(string); isText {
		if number, ok := storedNumber(text).(string); ok {
			return json.Number(number)
		}
	}
	return none
}

// factors are the suffixes of quantities, https://pkg.go.dev/k8s.io/apimachinery/pkg/api/resource.
var factors = map[string]*big.Rat{}

// binarySuffixes and decimalSuffixes are the suffixes from the largest to the smallest.
var (
	binarySuffixes  = []string{"Ei", "Pi", "Ti", "Gi", "Mi", "Ki", ""}
	decimalSuffixes = []string{"E", "P", "T", "G", "M", "k", "", "m", "u", "n"}
)

func init() {
	for i, suffix := range binarySuffixes {
		factors[suffix] = new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(10*(len(binarySuffixes)-1-i)))) //nolint:gosec // 0 to 6
	}
	for i, suffix := range decimalSuffixes {
		power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(1000), big.NewInt(int64(max(6-i, i-6))), nil))
		if i > 6 {
			power.Inv(power)
		}
		factors[suffix] = power
	}
}

// exceeds reports whether a quantity is as large as the largest one, or larger.
func exceeds(value *big.Rat) bool {
	return new(big.Rat).Abs(value).Cmp(new(big.Rat).SetInt64(math.MaxInt64)) >= 0
}

// printQuantity formats a number of units: the largest suffix that leaves an integer. Less than 1024
// has no binary suffix.
func printQuantity(unit string) func(any) any {
	return func(value any) any {
		number, isNumber := value.(json.Number)
		if !isNumber || !isInteger(number.String()) {
			return none
		}
		quantity, _ := new(big.Rat).SetString(number.String())
		quantity.Mul(quantity, factors[strings.TrimPrefix(unit, "1")])
		suffixes := decimalSuffixes
		if strings.HasSuffix(unit, "i") && new(big.Rat).Abs(quantity).Cmp(factors["Ki"]) >= 0 {
			suffixes = binarySuffixes
		}
		if exceeds(quantity) {
			return none
		}
		if quantity.Sign() == 0 {
			return "0"
		}
		for _, suffix := range suffixes {
			if mantissa := new(big.Rat).Quo(quantity, factors[suffix]); mantissa.IsInt() {
				return mantissa.Num().String() + suffix
			}
		}
		return none
	}
}

var quantityText = regexp.MustCompile(`^([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([eE][-+]?[0-9][0-9]?|[EPTGMk]|[EPTGMK]i|[mun]|)$`)

// readQuantity parses a quantity of at most 64 characters and an exponent of at most two digits. Like
// Kubernetes, it rounds to billionths, away from zero.
func readQuantity(unit string) func(any) any {
	return func(value any) any {
		text, isText := value.(string)
		parts := quantityText.FindStringSubmatch(text)
		if !isText || parts == nil || len(text) > 64 {
			return none
		}
		quantity, ok := new(big.Rat).SetString(strings.TrimPrefix(parts[1], "+"))
		if !ok {
			return none
		}
		if factor, known := factors[parts[2]]; known {
			quantity.Mul(quantity, factor)
		} else {
			power, _ := new(big.Rat).SetString("1e" + parts[2][1:])
			quantity.Mul(quantity, power)
		}
		billionths := new(big.Rat).Quo(quantity, factors["n"])
		if !billionths.IsInt() {
			whole := new(big.Int).Quo(billionths.Num(), billionths.Denom())
			whole.Add(whole, big.NewInt(int64(quantity.Sign())))
			quantity.Mul(new(big.Rat).SetInt(whole), factors["n"])
		}
		if exceeds(quantity) {
			return none
		}
		quantity.Quo(quantity, factors[strings.TrimPrefix(unit, "1")])
		if !quantity.IsInt() || !quantity.Num().IsInt64() {
			return none
		}
		return json.Number(quantity.Num().String())
	}
}

func printBoolean(value any) any {
	if boolean, isBoolean := value.(bool); isBoolean {
		return strconv.FormatBool(boolean)
	}
	return none
}

func readBoolean(value any) any {
	switch value {
	case "true":
		return true
	case "false":
		return false
	}
	return none
}

// printTimestamp formats seconds since 1970 by RFC 3339, by the proleptic Gregorian calendar.
func printTimestamp(value any) any {
	number, isNumber := value.(json.Number)
	if !isNumber || !isInteger(number.String()) {
		return none
	}
	seconds, err := number.Int64()
	if err != nil {
		return none
	}
	day, second := seconds/86400, seconds%86400
	if second < 0 {
		day, second = day-1, second+86400
	}
	for year, first := int64(0), daysBefore(0); year <= 9999; year++ {
		next := daysBefore(year + 1)
		if day >= first && day < next {
			month, rest := 0, day-first
			for rest >= daysIn(year, month) {
				month, rest = month+1, rest-daysIn(year, month)
			}
			return fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02dZ", year, month+1, rest+1, second/3600, second/60%60, second%60)
		}
		first = next
	}
	return none
}

// daysBefore returns the days from 1970 to the first day of a year from 0 on.
func daysBefore(year int64) int64 {
	leaps := (year+3)/4 - (year+99)/100 + (year+399)/400 // the leap years from 0 to the year before
	return year*365 + leaps - 719528
}

func daysIn(year int64, month int) int64 {
	if month == 1 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 29
	}
	return []int64{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month]
}

// readTimestamp reads what time.RFC3339 reads, if it has no fraction of a second.
func readTimestamp(value any) any {
	text, isText := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	if seconds := json.Number(strconv.FormatInt(at.Unix(), 10)); isText && err == nil && at.Nanosecond() == 0 && printTimestamp(seconds) != none {
		return seconds
	}
	return none
}

func join(separator string) func(any) any {
	return func(value any) any {
		list, isList := value.([]any)
		texts := []string{}
		for _, element := range list {
			text, isText := element.(string)
			if !isText {
				return none
			}
			texts = append(texts, text)
		}
		if !isList {
			return none
		}
		return strings.Join(texts, separator)
	}
}

func split(separator string) func(any) any {
	return func(value any) any {
		text, isText := value.(string)
		list := []any{}
		if !isText || text == "" {
			if isText {
				return list
			}
			return none
		}
		for part := range strings.SplitSeq(text, separator) {
			list = append(list, part)
		}
		return list
	}
}
