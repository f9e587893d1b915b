// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Row is one number: a measured value of a subject in a case of a suite.
type Row struct {
	Suite   string  `json:"suite"`
	Case    string  `json:"case"`
	Subject string  `json:"subject"`
	Value   float64 `json:"value"`
	// Unit is the unit of the value, such as us/object, and its meaning. It is unique for a subject
	// in a case.
	Unit string `json:"unit"`
}

// In returns a time as a number of units.
func In(unit, span time.Duration) float64 { return float64(span) / float64(unit) }

// WriteFile writes the rows of a suite to a JSON array, one row per line, after the file's rows of
// other suites. It rounds values to a thousandth.
func WriteFile(path, suite string, rows []Row) error {
	all, err := readFile(path)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(row Row) bool { return row.Suite == suite })
	text := []byte("[")
	for i, row := range append(all, rows...) {
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

// readFile returns the rows of a file, or none if the file does not exist.
func readFile(path string) (rows []Row, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%s has no rows, remove it: %w", path, err)
	}
	return rows, nil
}
