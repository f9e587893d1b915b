// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	runbooksPage = "../../../api/docs/runbooks.md"
	runbooksURL  = "https://github.com/conversion-operator/conversion-operator/blob/main/api/docs/runbooks.md#"
)

var section = regexp.MustCompile(`(?m)^## (\w+)\n`)

// readRunbooks returns the sections of the page by heading.
func readRunbooks(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(runbooksPage)
	must(t, err)
	found := section.FindAllStringSubmatchIndex(string(page), -1)
	all := map[string]string{}
	for i, at := range found {
		end := len(page)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		all[string(page[at[2]:at[3]])] = string(page[at[1]:end])
	}
	return all
}

// TestRunbooks: every alert has a section, and every section an alert.
func TestRunbooks(t *testing.T) {
	runbooks := readRunbooks(t)
	for _, alert := range alerts(t) {
		text, found := runbooks[alert.Alert]
		if !found {
			t.Errorf("%s has no section for %s", runbooksPage, alert.Alert)
			continue
		}
		delete(runbooks, alert.Alert)
		for _, part := range []string{"**Meaning.** ", "**Impact.** ", "**Diagnosis.** ", "**Mitigation.** ", "\n```sh play=", "\nkubectl "} {
			if !strings.Contains(text, part) {
				t.Errorf("the runbook of %s lacks %q", alert.Alert, part)
			}
		}
	}
	for name := range runbooks {
		t.Errorf("there is a runbook of %s, and no such alert", name)
	}
}

// TestAlertsSayWhatIsNeeded: an alert has annotations for the person on call, and a link to its
// runbook.
func TestAlertsSayWhatIsNeeded(t *testing.T) {
	for _, alert := range alerts(t) {
		if severity := alert.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, severity) {
			t.Errorf("%s: severity is %q", alert.Alert, severity)
		}
		if diff := cmp.Diff(runbooksURL+strings.ToLower(alert.Alert), alert.Annotations["runbook_url"]); diff != "" {
			t.Errorf("%s: runbook_url (-want +got):\n%s", alert.Alert, diff)
		}
		for _, annotation := range []string{"summary", "description"} {
			if text := alert.Annotations[annotation]; !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is %q: say it in a sentence", alert.Alert, annotation, text)
			}
		}
	}
}
