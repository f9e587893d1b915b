// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/standalone"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// printRoles prints the roles for the resources, and their bindings.
func (o *migrateOptions) printRoles(to io.Writer, cluster *migrateCluster, scope standalone.Scope) error {
	var subject *standalone.Subject
	if o.bindTo != "" {
		namespace, name, found := strings.Cut(o.bindTo, ":")
		if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("--bind-to must be NAMESPACE:NAME, is %q", o.bindTo)
		}
		subject = &standalone.Subject{Namespace: namespace, Name: name}
	}
	rights := cluster.finder.Rights(scope, &o.Options)
	if o.record != "" {
		rights = slices.DeleteFunc(rights, func(right standalone.Right) bool { return right.Resource == "configmaps" && right.Namespace != "" })
	}
	objects := standalone.Roles(roleName(scope), rights, subject)
	if o.record == "" && o.RecordNamespace == standalone.RecordNamespace {
		namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": standalone.RecordNamespace}}
		objects = slices.Insert(objects, 0, any(namespace))
	}
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(to, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// roleName names the resource, so that roles for several resources exist side by side.
func roleName(scope standalone.Scope) string {
	if len(scope.Targets) == 1 && !scope.All {
		return "conversion-migrate-" + scope.Targets[0].Name()
	}
	return "conversion-migrate"
}

// migrateReport is the output of a run. Its JSON form is stable.
type migrateReport struct {
	Results []standalone.Result  `json:"results"`
	LeftOut []standalone.LeftOut `json:"leftOut,omitempty"`
}

// showResults writes the results, and returns an error if not everything was migrated.
func (o *migrateOptions) showResults(command *cobra.Command, results []standalone.Result, left []standalone.LeftOut) error {
	report := migrateReport{results, left}
	err := o.output.write(command.OutOrStdout(), report, func(w io.Writer) error { return writeResults(w, &report) })
	if err != nil {
		return err
	}
	states := map[standalone.State]int{}
	var names []string
	for _, result := range results {
		states[result.State]++
		if result.State != standalone.Complete || result.Message != "" {
			names = append(names, result.Resource)
		}
	}
	switch {
	case len(results) > 0 && states[standalone.NotStarted] == len(results):
		return errors.New("nothing was migrated: " + results[0].Message)
	case states[standalone.Interrupted] > 0:
		return &exitError{exitFound, fmt.Errorf("not finished: %s: run the same command again", list(names))}
	case len(names) > 0:
		return &exitError{exitFound, fmt.Errorf("not complete: %s", list(names))}
	}
	return leftOutProblem(left)
}

// leftOutProblem returns an error if resources are left out whose objects should have been
// migrated.
func leftOutProblem(left []standalone.LeftOut) error {
	var names []string
	for _, each := range left {
		if each.Problem {
			names = append(names, each.Resource)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &exitError{exitFound, fmt.Errorf("not migrated: %s", list(names))}
}

// maxListed is how many names an error lists.
const maxListed = 5

func list(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}

func writeResults(w io.Writer, report *migrateReport) error {
	rows := [][]string{{"RESOURCE", "STATE", "OBJECTS", "REWRITTEN", "CURRENT", "FAILED", "VERIFIED", "BARRIER", "PRUNED"}}
	var problems strings.Builder
	for _, r := range report.Results {
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		rows = append(rows, []string{r.Resource, string(r.State), number(r.Total), number(r.Rewritten), number(r.Current), number(r.Failed),
			number(r.Verified), terminal.OrDash(string(r.Barrier)), terminal.OrDash(strings.Join(r.Pruned, ","))})
		if r.Message != "" {
			fmt.Fprintf(&problems, "%s: %s\n", r.Resource, terminal.OneLine(r.Message))
		}
		if r.State == standalone.Failed {
			fmt.Fprintf(&problems, "%s: %d of %d objects failed; status.storedVersions was not pruned; %s lists all of them\n", r.Resource, r.Failed, r.Total, r.Record)
		}
		writeFailures(&problems, r.Failures)
	}
	return writeTables(w, rows, problems.String(), report.LeftOut)
}

func writeFailures(w io.Writer, failures []v1alpha1.MigrationFailure) {
	for _, failure := range failures {
		fmt.Fprintf(w, "  %s: %s: %s\n", failure.Object, failure.Reason, terminal.OneLine(failure.Message))
		if failure.Command != "" {
			fmt.Fprintf(w, "    %s\n", failure.Command)
		}
	}
}

// writeTables writes a row for each resource, the problems, and what was left out.
func writeTables(w io.Writer, rows [][]string, problems string, left []standalone.LeftOut) error {
	if err := terminal.WriteTable(w, rows); err != nil {
		return err
	}
	if len(left) > 0 {
		problems += "\nLeft out:\n"
	}
	if _, err := io.WriteString(w, problems); err != nil || len(left) == 0 {
		return err
	}
	rows = nil
	for _, each := range left {
		rows = append(rows, []string{"  " + each.Resource, terminal.OneLine(each.Why)})
	}
	return terminal.WriteTable(w, rows)
}

// forecastReport is the output of a dry run. Its JSON form is stable.
type forecastReport struct {
	Forecasts []standalone.Forecast `json:"forecasts"`
	LeftOut   []standalone.LeftOut  `json:"leftOut,omitempty"`
}

// showForecast writes what a run would do, and returns an error if it would not complete.
func (o *migrateOptions) showForecast(command *cobra.Command, forecasts []standalone.Forecast, left []standalone.LeftOut) error {
	report := forecastReport{forecasts, left}
	err := o.output.write(command.OutOrStdout(), report, func(w io.Writer) error { return writeForecasts(w, &report) })
	if err != nil {
		return err
	}
	var names []string
	for i := range forecasts {
		if forecasts[i].WouldFail() {
			names = append(names, forecasts[i].Resource)
		}
	}
	if len(names) > 0 {
		return &exitError{exitFound, fmt.Errorf("a run would not complete: %s", list(names))}
	}
	return leftOutProblem(left)
}

func writeForecasts(w io.Writer, report *forecastReport) error {
	rows := [][]string{{"RESOURCE", "OBJECTS", "STORAGE", "STORED", "TRIED", "REFUSED", "WOULD PRUNE"}}
	var problems strings.Builder
	for _, f := range report.Forecasts {
		rows = append(rows, []string{f.Resource, strconv.FormatInt(f.Objects, 10), terminal.OrDash(f.StorageVersion), terminal.OrDash(strings.Join(f.StoredVersions, ",")),
			strconv.Itoa(f.Tried), strconv.Itoa(len(f.Refused)), terminal.OrDash(strings.Join(f.Prunes, ","))})
		if f.Problem != "" {
			fmt.Fprintf(&problems, "%s: %s\n", f.Resource, terminal.OneLine(f.Problem))
		}
		writeFailures(&problems, f.Refused)
	}
	return writeTables(w, rows, problems.String(), report.LeftOut)
}
