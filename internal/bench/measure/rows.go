// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"time"
)

// Row is one number: what was measured of a subject in a case of a suite.
type Row struct {
	Suite   string  `json:"suite"`
	Case    string  `json:"case"`
	Subject string  `json:"subject"`
	Value   float64 `json:"value"`
	// Unit of the value, such as us/object, and what it is: each unit stands once
	// for a subject in a case.
	Unit string `json:"unit"`
}

// In is a time as a number of units.
func In(unit, span time.Duration) float64 { return float64(span) / float64(unit) }

// WriteFile writes rows as a JSON array, one row a line, in the order given.
// Values are rounded to a thousandth.
func WriteFile(path string, rows []Row) error {
	text := []byte("[")
	for i, row := range rows {
		row.Value = math.Round(row.Value*1000) / 1000
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, '\n'), line...)
	}
	text = append(text, "\n]\n"...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
