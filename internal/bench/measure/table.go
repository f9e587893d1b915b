// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
)

// Tables prints a table per case, with a line per subject and a column per unit, in the order of
// the rows.
func Tables(to io.Writer, rows []Row) error {
	for len(rows) > 0 {
		first := rows[0]
		end := slices.IndexFunc(rows, func(r Row) bool { return r.Suite != first.Suite || r.Case != first.Case })
		if end < 0 {
			end = len(rows)
		}
		if err := table(to, rows[:end]); err != nil {
			return err
		}
		rows = rows[end:]
	}
	return nil
}

func table(to io.Writer, rows []Row) error {
	var subjects, units []string
	cells := map[[2]string]string{}
	for _, row := range rows {
		if !slices.Contains(subjects, row.Subject) {
			subjects = append(subjects, row.Subject)
		}
		if !slices.Contains(units, row.Unit) {
			units = append(units, row.Unit)
		}
		cells[[2]string{row.Subject, row.Unit}] = number(row.Value)
	}
	fmt.Fprintf(to, "\n%s: %s\n", rows[0].Suite, rows[0].Case)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, unit := range units {
		fmt.Fprintf(table, "%s\t", unit)
	}
	fmt.Fprintln(table)
	for _, subject := range subjects {
		for _, unit := range units {
			fmt.Fprintf(table, "%s\t", cells[[2]string{subject, unit}])
		}
		fmt.Fprintf(table, "  %s\n", subject)
	}
	return table.Flush()
}

// number formats about three digits, as more would be noise.
func number(value float64) string {
	digits := 0
	for limit := 100.0; value < limit && digits < 2; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(value, 'f', digits, 64)
}
