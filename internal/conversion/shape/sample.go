// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Sample is a value that fits: the text as a JSON string if that does, else one that
// the schema names or its type suggests; nil where none of these fits.
func (s *Schema) Sample(text json.RawMessage) json.RawMessage {
	candidates := append([]json.RawMessage{text, s.node.Default}, s.node.Enum...)
	for _, limit := range []*float64{s.node.Minimum, s.node.Maximum} {
		if limit != nil {
			candidates = append(candidates, strconv.AppendFloat(nil, *limit, 'f', -1, 64))
		}
	}
	for _, usual := range []string{"1", "true", "{}", "[]", `"a"`, `"1"`, `"1s"`, `"2006-01-02T15:04:05Z"`, `"192.0.2.1"`} {
		candidates = append(candidates, json.RawMessage(usual))
	}
	at := slices.IndexFunc(candidates, func(value json.RawMessage) bool { return value != nil && s.Fits(value) == nil })
	if at < 0 {
		return nil
	}
	return candidates[at]
}
