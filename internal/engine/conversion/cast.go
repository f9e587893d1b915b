// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// MaxCastSeconds is the longest duration of package time, in seconds: a rule casts no larger
// integer.
const MaxCastSeconds = math.MaxInt64 / int64(time.Second)

// Units are the units in which a cast may count a quantity: suffixes of package resource, and 1 for
// none.
var Units = []string{"1", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"}

// units has the quantity of each unit.
var units = func() map[string]resource.Quantity {
	all := map[string]resource.Quantity{"1": resource.MustParse("1")}
	for _, unit := range Units[1:] {
		all[unit] = resource.MustParse("1" + unit)
	}
	return all
}()

// write formats a JSON number or boolean.
func (c *Cast) write(value []byte) (text []byte, ok bool) {
	switch {
	case c.Boolean:
		return value, isBoolean(value)
	case c.Number:
		return canonicalNumber(value)
	}
	integer, ok := readInteger(value)
	switch {
	case !ok:
		return nil, false
	case c.Quantity != "":
		return formatQuantity(integer, c.Quantity)
	case c.Timestamp:
		return formatTimestamp(integer)
	case c.durationUnit() != 0:
		return formatDuration(integer, c.durationUnit())
	}
	return value, true
}

// Read parses the text of a string into a JSON number or boolean.
func (c *Cast) Read(text []byte) (value []byte, ok bool) {
	switch {
	case c.Boolean:
		return text, isBoolean(text)
	case c.Number:
		return canonicalNumber(text)
	case c.Quantity != "":
		return parseQuantity(text, c.Quantity)
	case c.Timestamp:
		return parseTimestamp(text)
	case c.durationUnit() != 0:
		return parseDuration(text, c.durationUnit())
	}
	return text, isInteger(text)
}

func isBoolean(text []byte) bool { return string(text) == "true" || string(text) == "false" }

// The times that RFC 3339 can write, in seconds since 1970: the years 0 to 9999. A rule casts any
// integer up to MaxCastTimestamp, also a negative one.
const (
	MaxCastTimestamp = -minTimestamp
	minTimestamp     = -62167219200
	maxTimestamp     = 253402300799
)

func formatTimestamp(seconds int64) ([]byte, bool) {
	if seconds < minTimestamp || seconds > maxTimestamp {
		return nil, false
	}
	return time.Unix(seconds, 0).UTC().AppendFormat(nil, time.RFC3339), true
}

// parseTimestamp returns the seconds of a time without fractions of them.
func parseTimestamp(text []byte) ([]byte, bool) {
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil || at.Nanosecond() != 0 || at.Unix() < minTimestamp || at.Unix() > maxTimestamp {
		return nil, false
	}
	return strconv.AppendInt(nil, at.Unix(), 10), true
}

// durationUnit returns what the number of a duration counts, 0 if the cast is not for durations.
func (c *Cast) durationUnit() time.Duration {
	switch {
	case c.Seconds:
		return time.Second
	case c.Milliseconds:
		return time.Millisecond
	}
	return 0
}

func formatDuration(count int64, unit time.Duration) ([]byte, bool) {
	if longest := math.MaxInt64 / int64(unit); count > longest || count < -longest {
		return nil, false
	}
	return []byte((time.Duration(count) * unit).String()), true
}

func parseDuration(text []byte, unit time.Duration) ([]byte, bool) {
	duration, err := time.ParseDuration(string(text))
	if err != nil || duration%unit != 0 {
		return nil, false
	}
	return strconv.AppendInt(nil, int64(duration/unit), 10), true
}

// canonicalNumber returns a JSON number as an API server writes it: an integer of 64 bits, or a
// float of 64 bits in the form of package json.
func canonicalNumber(text []byte) ([]byte, bool) {
	if !json.Valid(text) || !bytes.ContainsAny(text[:1], "-0123456789") || !isDigit(text[len(text)-1]) {
		return nil, false
	}
	if isInteger(text) {
		return text, true
	}
	float, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return nil, false
	}
	number, err := json.Marshal(float + 0) // -0 is 0
	return number, err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// formatQuantity returns the canonical form of a quantity.
func formatQuantity(count int64, unit string) ([]byte, bool) {
	if unit == "m" {
		return []byte(resource.NewMilliQuantity(count, resource.DecimalSI).String()), true
	}
	one := units[unit]
	value := new(big.Int).Mul(big.NewInt(count), big.NewInt(one.Value()))
	if value.CmpAbs(big.NewInt(math.MaxInt64)) >= 0 {
		return nil, false
	}
	return []byte(resource.NewQuantity(value.Int64(), one.Format).String()), true
}

// parseQuantity returns how many units a quantity has, if it is a whole number.
func parseQuantity(text []byte, unit string) ([]byte, bool) {
	if len(text) > maxQuantityText || !quantityForm.Match(text) {
		return nil, false
	}
	quantity, err := resource.ParseQuantity(string(text))
	if err != nil {
		return nil, false
	}
	value := ratOf(quantity)
	if limit := new(big.Rat).SetInt64(math.MaxInt64); new(big.Rat).Abs(value).Cmp(limit) >= 0 {
		return nil, false // package resource may have capped it
	}
	if value.Quo(value, ratOf(units[unit])); !value.IsInt() || !value.Num().IsInt64() {
		return nil, false
	}
	return value.Num().Append(nil, 10), true
}

func ratOf(quantity resource.Quantity) *big.Rat {
	value, _ := new(big.Rat).SetString(quantity.AsDec().String())
	return value
}

// quantityForm is the form of quantities in the documentation of package resource, which also reads a
// sign alone. The limits bound its work: it computes with as many digits as an exponent says.
var quantityForm = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2}|[EPTGMK]i|[EPTGMkmun])?$`)

const maxQuantityText = 64

// image writes a value as a string, or reads it.
func (c *Cast) image(r *conversionRun, x *exchange, value *tree.Node) *tree.Node {
	switch writes := x.toHub == c.Hub; {
	case c.Document != "":
		return r.document(x, value)
	case writes && c.Separator != "":
		return r.joined(c, value)
	case writes && value.IsScalar():
		if text, ok := c.write(value.JSON()); ok {
			return r.NewTextOf(text)
		}
	case writes || !value.Is(tree.String):
	case c.Separator != "":
		return r.parts(c, value.Text())
	default:
		if text, ok := c.Read([]byte(value.Text())); ok {
			return r.NewScalar(bytes.Clone(text))
		}
	}
	return nil
}

func (c *Cast) sample(f *filler, x *exchange, text *tree.Node) *tree.Node {
	value := f.NewScalar([]byte("80"))
	switch {
	case c.Boolean:
		value = f.NewScalar([]byte("true"))
	case c.Separator != "":
		value = f.NewList([]*tree.Node{text})
	case c.List:
		value = f.NewList(nil)
	case c.Document != "":
		value = f.NewObject()
	}
	if c.Hub {
		return value
	}
	writes := *x
	writes.toHub = false
	return c.image(f.conversionRun, &writes, value)
}

// joined returns the strings of a list with separators between them.
func (r *conversionRun) joined(c *Cast, list *tree.Node) *tree.Node {
	if !list.Is(tree.List) {
		return nil
	}
	var text []byte
	for i, element := range list.Elems() {
		if !element.Is(tree.String) {
			return nil
		}
		if i > 0 {
			text = append(text, c.Separator...)
		}
		text = append(text, element.Text()...)
	}
	return r.NewTextOf(text)
}

// parts returns the list of the strings between separators. The empty text is the empty list.
func (r *conversionRun) parts(c *Cast, text string) *tree.Node {
	if text == "" {
		return r.NewList(nil)
	}
	texts := strings.Split(text, c.Separator)
	elements := r.Room(len(texts))
	for _, text := range texts {
		elements = append(elements, r.NewText(text))
	}
	return r.NewList(elements)
}

// document writes a value as a text, or reads it. What is read is pruned, and has its defaults, so that the text can be
// compared with what the API server makes of the value.
func (r *conversionRun) document(x *exchange, value *tree.Node) *tree.Node {
	length := len(value.JSON())
	r.Spend(documentUnits*length, documentBytes*length)
	defer r.Spend(0, -documentBytes*length)
	if x.toHub == x.Cast.Hub {
		return r.written(x, value)
	}
	if !value.Is(tree.String) {
		return nil
	}
	made := document.Read(r.Arena, x.Cast.Document, []byte(value.Text()))
	if made == nil || x.structure == nil {
		return made
	}
	made, isOfType := x.structure.Prune(r.Arena, made)
	if !isOfType {
		return nil
	}
	if r.complete {
		made = x.structure.FillDefaults(r.Arena, made)
	}
	return made
}

// written returns the text of a value, nil if it has none.
func (r *conversionRun) written(x *exchange, value *tree.Node) *tree.Node {
	text := document.Write(r.Arena, x.Cast.Document, value)
	if text == nil {
		return nil
	}
	return r.NewTextOf(text)
}

// completed returns a text with the members of a preserved text that the schema does not declare, nil if there are none.
func (r *conversionRun) completed(x *exchange, made, preserved *tree.Node) *tree.Node {
	if x.structure == nil || !made.Is(tree.String) || !preserved.Is(tree.String) {
		return nil
	}
	length := len(made.JSON()) + len(preserved.JSON())
	r.Spend(documentUnits*length, documentBytes*length)
	defer r.Spend(0, -documentBytes*length)
	content := document.Read(r.Arena, x.Cast.Document, []byte(made.Text()))
	known := document.Read(r.Arena, x.Cast.Document, []byte(preserved.Text()))
	if content == nil || known == nil {
		return nil
	}
	if all, added := x.structure.AddPruned(r.Arena, content, known); added {
		return r.written(x, all)
	}
	return nil
}
