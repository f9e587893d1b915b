// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// catalogue is the folder of the policies. Its page has a table with a row for each of them, which
// the tests compare with their results, and rewrite with -update.
var catalogue = filepath.Join(top, "config", "samples", "catalogue")

// page protects the page, because the tests of several projects rewrite it.
var page sync.Mutex

// fields counts the leaf fields of both versions that are not simply copied, by what the policy says
// about them.
type fields struct {
	rules, cel, preserved int
	// unsaid are those of the preserved ones that have a counterpart in the other version.
	unsaid int
}

func (p *project) count(t *testing.T, leaves []compile.FieldVerdict, policy *v1alpha1.DeclarativeConverter) fields {
	t.Helper()
	var counted fields
	expressions, unsaid := map[string]bool{}, maps.Clone(p.unsaid)
	for i := range policy.Spokes {
		for _, rule := range compile.Rules(policy, i) {
			expressions[rule.At] = rule.CEL != nil
		}
	}
	for _, leaf := range leaves {
		switch {
		case leaf.Spoke != p.spoke.name:
		case expressions[leaf.Rule]:
			counted.cel++
		case leaf.Rule != "":
			counted.rules++
		case leaf.Owner != compile.OwnerExact:
			counted.preserved++
			for root := range p.unsaid {
				if rest, inside := strings.CutPrefix(leaf.String(), root); inside && (rest == "" || strings.ContainsAny(rest[:1], ".[")) {
					counted.unsaid++
					delete(unsaid, root)
					break
				}
			}
		}
	}
	for root := range unsaid {
		t.Errorf("no field of %s is preserved without a rule", root)
	}
	return counted
}

// tally counts the objects of one direction.
type tally struct {
	// same are those that the project's functions and the policy convert to the same object.
	same int
	// lost are those that the project's functions do not restore on the way back.
	lost int
}

// checkRow compares the project's row of the table with the results of the run. Another number of
// rounds has other results.
func (r *run) checkRow(t *testing.T) {
	t.Helper()
	row := fmt.Sprintf("| [%s](%s/policy.yaml) | %s | %s | %s | %s | %d | %d | %d | %d | %d | %d, %d | %d, %d | 0 |",
		r.sample, r.sample, r.kind, r.moduleVersion, r.spoke.name, r.hub.name,
		r.fields.rules+r.fields.cel+r.fields.preserved, r.fields.rules, r.fields.cel, r.fields.preserved-r.fields.unsaid, r.fields.unsaid,
		r.up.same, r.down.same, r.up.lost, r.down.lost)
	if *rounds != tabled {
		t.Logf("%d objects per direction: %s", *rounds, row)
		return
	}
	page.Lock()
	defer page.Unlock()
	rows := readRows(t)
	if golden.Update() {
		rows[r.sample] = row
		writeRows(t, rows)
	}
	if rows[r.sample] != row {
		t.Errorf("the table of config/samples/catalogue/README.md has, and must have; make realworld TESTFLAGS=-update rewrites it:\n%s\n%s", rows[r.sample], row)
	}
}

// TestCatalogue: each policy of the catalogue has a row and a test, and the last row has the sums.
func TestCatalogue(t *testing.T) {
	if golden.Update() {
		return // the other tests write the table meanwhile
	}
	policies, err := filepath.Glob(filepath.Join(catalogue, "*", "policy.yaml"))
	expect.NoError(t, err)
	rows, tests := readRows(t), sources(t)
	if len(rows) != len(policies) {
		t.Errorf("the table has %d rows, and the catalogue %d policies", len(rows), len(policies))
	}
	for _, policy := range policies {
		sample := filepath.Base(filepath.Dir(policy))
		if rows[sample] == "" || !strings.Contains(tests, strconv.Quote(sample)) {
			t.Errorf("%s has no row in the table, or no test", sample)
		}
	}
	if !strings.Contains(readPage(t), "\n"+sums(rows)+"\n") {
		t.Errorf("the last row must be\n%s", sums(rows))
	}
}

// sources returns the text of all tests of this package.
func sources(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	expect.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		expect.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(catalogue, "README.md"))
	expect.NoError(t, err)
	return string(text)
}

// readRows returns the rows of the table by sample.
func readRows(t *testing.T) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for line := range strings.Lines(readPage(t)) {
		if sample, isRow := strings.CutPrefix(line, "| ["); isRow {
			sample, _, _ = strings.Cut(sample, "]")
			rows[sample] = strings.TrimSuffix(line, "\n")
		}
	}
	return rows
}

// writeRows replaces the rows below the head of the table.
func writeRows(t *testing.T, rows map[string]string) {
	t.Helper()
	const head = "| --- | --- | --- | "
	var text strings.Builder
	for line := range strings.Lines(readPage(t)) {
		if strings.HasPrefix(line, "| [") || strings.HasPrefix(line, sumsPrefix) {
			continue
		}
		text.WriteString(line)
		if strings.HasPrefix(line, head) {
			for _, sample := range slices.Sorted(maps.Keys(rows)) {
				text.WriteString(rows[sample] + "\n")
			}
			text.WriteString(sums(rows) + "\n")
		}
	}
	expect.NoError(t, os.WriteFile(filepath.Join(catalogue, "README.md"), []byte(text.String()), 0o600))
}

const sumsPrefix = "| all | "

// sums returns the last row of the table: the sums of the others, with shares of the fields.
func sums(rows map[string]string) string {
	var total [10]int
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		at := 0
		for _, cell := range cells[5:] {
			for number := range strings.SplitSeq(cell, ", ") {
				value, err := strconv.Atoi(number)
				if err != nil {
					return fmt.Sprintf("%v in the row %s", err, row)
				}
				total[at] += value
				at++
			}
		}
	}
	share := func(of int) string { return fmt.Sprintf("%d (%d %%)", of, (100*of+total[0]/2)/max(total[0], 1)) }
	return fmt.Sprintf("%s| | | | %d | %s | %s | %s | %s | %d, %d | %d, %d | %d |", sumsPrefix, total[0],
		share(total[1]), share(total[2]), share(total[3]), share(total[4]), total[5], total[6], total[7], total[8], total[9])
}
