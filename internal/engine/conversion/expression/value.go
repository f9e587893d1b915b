// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiserver/pkg/cel/common"
)

// errUnreadable is the result of reading a value that does not have the type of its schema, or a
// number without an exact CEL value.
var errUnreadable = errors.New("the value is not of the type that the schema says, or not exact")

// readValue returns the CEL value of a JSON text, with the semantics of validation rules: equality
// of lists by their keys, dates and durations. It returns nil for nil and for null, because
// validation rules treat a nullable field that is null as missing.
func readValue(text []byte, s common.Schema) ref.Val {
	if text == nil {
		return nil
	}
	decoded, err := decode(text)
	if err != nil {
		return types.WrapErr(errUnreadable)
	}
	if decoded == nil {
		return nil
	}
	value, exact := convertNumbers(decoded)
	if !exact || !matchesSchema(value, s) {
		return types.WrapErr(errUnreadable)
	}
	if IsOpaque(s) {
		return types.DefaultTypeAdapter.NativeToValue(value)
	}
	return common.UnstructuredToVal(value, s)
}

func decode(text []byte) (any, error) {
	if len(text) > 0 && text[0] == '"' {
		var plain string
		err := json.Unmarshal(text, &plain)
		return plain, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var decoded any
	err := decoder.Decode(&decoded)
	return decoded, err
}

// convertNumbers converts numbers in place to int64 and float64, as the API server does. It
// returns false instead of rounding an integer.
func convertNumbers(value any) (any, bool) {
	switch value := value.(type) {
	case json.Number:
		return number(string(value))
	case []any:
		for i, element := range value {
			var exact bool
			if value[i], exact = convertNumbers(element); !exact {
				return nil, false
			}
		}
	case map[string]any:
		for name, member := range value {
			var exact bool
			if value[name], exact = convertNumbers(member); !exact {
				return nil, false
			}
		}
	}
	return value, true
}

func number(text string) (any, bool) {
	if strings.ContainsAny(text, ".eE") {
		value, err := strconv.ParseFloat(text, 64)
		return value, err == nil
	}
	value, err := strconv.ParseInt(text, 10, 64)
	return value, err == nil
}

// matchesSchema reports whether a value and all its content have the types of the schema. CEL
// values only check that when they are used; for equality, whether they do depends on the order of
// a map.
func matchesSchema(value any, s common.Schema) bool {
	switch value := value.(type) {
	case nil:
		return s.Nullable() || Untyped(s)
	case int64:
		if s.Type() == "number" && !exactDouble(value) {
			return false
		}
	case []any:
		if s.Type() == "array" && s.Items() != nil {
			return elementsMatch(value, s.Items())
		}
	case map[string]any:
		if s.Type() == "object" {
			return membersMatch(value, s)
		}
	}
	return !types.IsError(common.UnstructuredToVal(value, s))
}

func elementsMatch(elements []any, s common.Schema) bool {
	for _, element := range elements {
		if !matchesSchema(element, s) {
			return false
		}
	}
	return true
}

// membersMatch ignores null, which is a missing field, and members that the schema does not name,
// because no expression reads them.
func membersMatch(members map[string]any, s common.Schema) bool {
	fields, others := s.Properties(), s.AdditionalProperties()
	for name, member := range members {
		if field, named := fields[name]; named {
			if member != nil && !matchesSchema(member, field) {
				return false
			}
		} else if others != nil && others.Schema() != nil && !matchesSchema(member, others.Schema()) {
			return false
		}
	}
	return true
}

// exactDouble reports whether a double can represent the integer exactly.
func exactDouble(value int64) bool {
	double := float64(value)
	return double < math.MaxInt64 && int64(double) == value
}
