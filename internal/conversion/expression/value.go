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

// errUnreadable is what an expression meets that reads a value which is not what
// the schema says, or a number that has no exact value here.
var errUnreadable = errors.New("the value is not of the type that the schema says, or not exact")

// read makes a value of a JSON text, with the meaning that validation rules give
// it: equality of lists by their keys, dates and durations. Nil is no value; so
// is null, as a nullable field that is null counts as missing in validation rules.
func read(text []byte, s *Schema) ref.Val {
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
	value, exact := withNumbers(decoded)
	if !exact || !readable(value, s) {
		return types.WrapErr(errUnreadable)
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

// withNumbers gives numbers the types that the API server gives them, int64 and
// float64, in place. An integer that is neither is not rounded.
func withNumbers(value any) (any, bool) {
	switch value := value.(type) {
	case json.Number:
		return number(string(value))
	case []any:
		for i, element := range value {
			var exact bool
			if value[i], exact = withNumbers(element); !exact {
				return nil, false
			}
		}
	case map[string]any:
		for name, member := range value {
			var exact bool
			if value[name], exact = withNumbers(member); !exact {
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

// readable reports whether a value is what the schema says, all through. The
// values of validation rules find that out as they are used, and with equality
// it depends on the order of a map whether they do.
func readable(value any, s *Schema) bool {
	switch value := value.(type) {
	case nil:
		return s.nullable
	case int64:
		if s.kind == "number" && !exactDouble(value) {
			return false
		}
	case []any:
		if s.kind == "array" && s.items != nil {
			return allReadable(value, s.items)
		}
	case map[string]any:
		if s.kind == "object" {
			return readableMembers(value, s)
		}
	}
	return !types.IsError(common.UnstructuredToVal(value, s))
}

func allReadable(elements []any, s *Schema) bool {
	for _, element := range elements {
		if !readable(element, s) {
			return false
		}
	}
	return true
}

// readableMembers passes over null, which is a missing field, and over members
// that the schema does not name: no expression reads them.
func readableMembers(members map[string]any, s *Schema) bool {
	for name, member := range members {
		if field, named := s.properties[name]; named {
			if member != nil && !readable(member, field.(*Schema)) {
				return false
			}
		} else if s.Value() != nil && !readable(member, s.Value()) {
			return false
		}
	}
	return true
}

// exactDouble reports whether an integer is one as a double too.
func exactDouble(value int64) bool {
	double := float64(value)
	return double < math.MaxInt64 && int64(double) == value
}
