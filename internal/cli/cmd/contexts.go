// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/internal/cli/findings"
)

// formatOfContexts is raised when a reader of an older report on several contexts would misread it.
const formatOfContexts = 1

// acceptContexts lets --context name several contexts of the kubeconfig.
func acceptContexts(command *cobra.Command) {
	command.Flags().Lookup("context").Usage = "name of the kubeconfig context to use, or several, separated by commas: the command reads one cluster after the other, and writes one report"
}

// hasComma reports whether --context may name several contexts.
func hasComma(config *genericclioptions.ConfigFlags) bool {
	return strings.Contains(*config.Context, ",")
}

// contextNames returns the contexts that --context names; a single one may have a comma in its name.
func contextNames(config *genericclioptions.ConfigFlags) ([]string, error) {
	text := *config.Context
	if !hasComma(config) {
		return []string{text}, nil
	}
	if raw, err := config.ToRawKubeConfigLoader().RawConfig(); err == nil && raw.Contexts[text] != nil {
		return []string{text}, nil
	}
	names := strings.Split(text, ",")
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("--context must be names of different contexts, separated by commas, is %q", text)
		}
	}
	return names, nil
}

// reporting is a command that reads a cluster and reports on it.
type reporting[R any] struct {
	config *genericclioptions.ConfigFlags
	output *output
	stdout io.Writer
	stderr io.Writer
	// find returns the report on the cluster of the current value of --context. It may return a
	// report of what was done before an error.
	find func(ctx context.Context) (*R, error)
	// writeText writes the report in a form for people, and a summary.
	writeText func(w, summary io.Writer, report *R) error
	// findings are those of the report, for pipelines.
	findings func(*R) *findings.Report
	// judge returns an error with the exit code of the report.
	judge func(*R) error
}

// inContext is what a command found in one context. Its JSON form is stable.
type inContext[R any] struct {
	Context string `json:"context"`
	// Error is why there is no report, or only a part of it.
	Error  string `json:"error,omitempty"`
	Report *R     `json:"report,omitempty"`

	err error
}

// run reports on one cluster, or on each of several contexts.
func (r *reporting[R]) run(ctx context.Context) error {
	names, err := contextNames(r.config)
	if err != nil {
		return err
	}
	if len(names) > 1 {
		return r.several(ctx, names)
	}
	report, err := r.find(ctx)
	if report == nil {
		return err
	}
	err = errors.Join(err, r.output.writeOrFind(r.stdout, report, func() *findings.Report { return r.findings(report) },
		func(w io.Writer) error { return r.writeText(w, r.stderr, report) }))
	if err != nil {
		return err
	}
	return r.judge(report)
}

// several reports on one context after the other. One that cannot be read does not hide the others.
func (r *reporting[R]) several(ctx context.Context, names []string) error {
	all := *r.config.Context
	defer func() { *r.config.Context = all }()
	var results []inContext[R]
	for _, name := range names {
		*r.config.Context = name
		result := inContext[R]{Context: name}
		result.Report, result.err = r.find(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if result.err != nil {
			result.Error = result.err.Error()
		}
		results = append(results, result)
	}
	if err := r.writeSeveral(results); err != nil {
		return err
	}
	return r.worst(results)
}

func (r *reporting[R]) writeSeveral(results []inContext[R]) error {
	report := struct {
		Format   int            `json:"format"`
		Contexts []inContext[R] `json:"contexts"`
	}{formatOfContexts, results}
	return r.output.writeOrFind(r.stdout, report, func() *findings.Report { return r.merged(results) }, func(w io.Writer) error {
		for i, result := range results {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "# Context %s\n\n", result.Context)
			if result.err != nil {
				fmt.Fprintf(w, "Error: %s\n", result.Error)
			}
			if result.Report == nil {
				continue
			}
			if err := r.writeText(w, w, result.Report); err != nil {
				return err
			}
		}
		return nil
	})
}

// merged has the findings of all contexts, each with the name of its context.
func (r *reporting[R]) merged(results []inContext[R]) *findings.Report {
	const failed = "ContextFailed"
	all := &findings.Report{}
	var failures []findings.Finding
	for _, result := range results {
		if result.err != nil {
			failures = append(failures, findings.Finding{Rule: failed, Level: findings.Error, Message: result.Context + ": " + result.Error})
		}
		report := r.findings(cmp.Or(result.Report, new(R)))
		all.Command, all.Rules, all.Subject = report.Command, report.Rules, cmp.Or(all.Subject, report.Subject)
		for _, finding := range report.Findings {
			finding.Message = result.Context + ": " + finding.Message
			all.Findings = append(all.Findings, finding)
		}
	}
	all.Rules = append(all.Rules, findings.Rule{ID: failed, Description: "The cluster of a context could not be examined"})
	all.Findings = append(all.Findings, failures...)
	return all
}

// worst returns the errors of all contexts, with the worst exit code: that the work was not done
// counts more than what was found, and that more than what could not be checked.
func (r *reporting[R]) worst(results []inContext[R]) error {
	worst := 0
	var errs []error
	for _, result := range results {
		err := unable(result.err)
		if err == nil {
			err = r.judge(result.Report)
		}
		if err == nil {
			continue
		}
		if code := ExitCode(err); rank(code) > rank(worst) {
			worst = code
		}
		errs = append(errs, fmt.Errorf("context %s: %w", result.Context, err))
	}
	if len(errs) == 0 {
		return nil
	}
	return &exitError{worst, errors.Join(errs...)}
}

// rank orders exit codes by how bad they are.
func rank(code int) int { return slices.Index([]int{0, exitIncomplete, exitFound, exitUnable}, code) }
