// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
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
