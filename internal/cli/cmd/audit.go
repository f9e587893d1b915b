// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	"github.com/conversion-operator/conversion-operator/internal/cli/audit/live"
	"github.com/conversion-operator/conversion-operator/internal/cli/findings"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// auditOptions are the flags of the audit command.
type auditOptions struct {
	config   *genericclioptions.ConfigFlags
	files    []string
	upgrade  []string
	output   output
	severity string
	noReads  bool
	soon     time.Duration
	atOnce   int
}

func newAuditCommand() *cobra.Command {
	options := auditOptions{}
	command := &cobra.Command{
		Use:   "audit [CUSTOMRESOURCEDEFINITION...]",
		Short: "Find risks for objects of CustomResourceDefinitions, in any cluster",
		Long: `Find risks for objects of CustomResourceDefinitions, in any cluster: stored
versions that block an upgrade, versions between which fields are lost, autoscalers
that find no scale, conversion webhooks that do not answer or are not trusted, and
more. The command needs no operator, and writes nothing.

To check conversion webhooks, the command reads one object of each kind at each
served version, metadata only. --no-reads skips that. The report lists as not
checked what the command may not read.

With -f, the command examines the definitions in files and reads no cluster. Each
-f is one rendering, such as a chart with some values: the command also compares
what they have of a definition, and looks for the Services of its webhook. With
--upgrade, it compares the definitions of the cluster, or of -f, with manifests
that are about to replace them.

Rights: get and list of customresourcedefinitions, conversionpolicies,
storageversionmigrations, services, endpointslices and horizontalpodautoscalers,
and of the custom resources themselves unless --no-reads.

Exit codes:
  0  no finding of at least the severity --severity
  1  findings of at least that severity
  2  the audit could not run: a flag is wrong, or a file or the cluster cannot
     be read`,
		Example: `  conversion-operator audit
  conversion-operator audit certificates.cert-manager.io --severity note -o wide
  conversion-operator audit --upgrade new-crds.yaml
  conversion-operator audit --context staging,production -o junit > audit.xml
  conversion-operator audit -f config/crd -o json`,
	}
	options.addFlags(command)
	return forUsers(command, cobra.ArbitraryArgs, options.run)
}

func (o *auditOptions) addFlags(command *cobra.Command) {
	o.config = clusterFlags(command)
	acceptContexts(command)
	o.output.add(command, formTable, formWide, formJSON, formYAML, formSARIF, formJUnit)
	command.ValidArgsFunction = namesIn(o.config, definitionKind)
	flags := command.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file or directory of CustomResourceDefinitions, - for stdin; can be given several times; the command reads no cluster")
	flags.StringArrayVar(&o.upgrade, "upgrade", nil, "file or directory of CustomResourceDefinitions that you are about to apply; can be given several times; the command examines only these")
	flags.StringVar(&o.severity, "severity", "warning", "minimum severity to report: error, warning or note")
	complete(command, "severity", "error", "warning", "note")
	flags.BoolVar(&o.noReads, "no-reads", false, "read no custom resources; the command then does not check whether conversion webhooks work")
	flags.DurationVar(&o.soon, "expires-within", 30*24*time.Hour, "report certificates that expire within this time")
	flags.IntVar(&o.atOnce, "at-once", 8, "number of definitions to examine, and hold in memory, at the same time")
}

func (o *auditOptions) validate(names []string) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	switch {
	case !slices.Contains(audit.Severities, o.threshold()):
		return fmt.Errorf("--severity must be error, warning or note, is %q", o.severity)
	case o.atOnce < 1:
		return fmt.Errorf("--at-once must be at least 1, is %d", o.atOnce)
	case o.soon < 0:
		return fmt.Errorf("--expires-within must not be negative, is %s", o.soon)
	case len(o.files) > 0 && hasComma(o.config):
		return errors.New("-f examines files: leave out --context")
	case len(names) > 0 && len(o.files)+len(o.upgrade) > 0:
		return errors.New("name definitions, or pass files: with files, the command examines the definitions in them")
	}
	return nil
}

// threshold accepts the flag in lower and upper case.
func (o *auditOptions) threshold() audit.Severity {
	return audit.Severity(strings.ToUpper(o.severity[:min(1, len(o.severity))]) + strings.ToLower(o.severity[min(1, len(o.severity)):]))
}

func (o *auditOptions) run(command *cobra.Command, names []string) error {
	if err := o.validate(names); err != nil {
		return err
	}
	find, err := o.finder(command, names)
	if err != nil {
		return err
	}
	reporting := reporting[audit.Report]{
		config: o.config, output: &o.output, stdout: command.OutOrStdout(), stderr: command.ErrOrStderr(), find: find,
		writeText: func(w, summary io.Writer, report *audit.Report) error {
			table := audit.Table{Wide: o.output.form == formWide, Color: bool(colorsOf(command.OutOrStdout()))}
			return errors.Join(report.WriteTable(w, table), report.WriteSummary(summary))
		},
		findings: func(report *audit.Report) *findings.Report {
			return foundByAudit(report, slices.Concat(o.files, o.upgrade))
		},
		judge: func(report *audit.Report) error {
			if len(report.Findings) > 0 {
				return &exitError{exitFound, errors.New("problems found; see the report")}
			}
			return nil
		},
	}
	return reporting.run(command.Context())
}

// finder returns a function that audits files, or the cluster of a context. It has read all files.
func (o *auditOptions) finder(command *cobra.Command, names []string) (func(context.Context) (*audit.Report, error), error) {
	stdin := stdinOf(command)
	next, bundle, err := o.next(stdin)
	if err != nil {
		return nil, err
	}
	if len(o.files) > 0 {
		return func(context.Context) (*audit.Report, error) { return o.auditFiles(stdin, next, bundle) }, nil
	}
	names = slices.AppendSeq(names, maps.Keys(next))
	return func(ctx context.Context) (*audit.Report, error) {
		return o.auditCluster(ctx, names, next, bundle, command.ErrOrStderr())
	}, nil
}

// auditFiles examines each argument of -f as one rendering, and compares them. If there are manifests of
// --upgrade, it examines only what they replace.
func (o *auditOptions) auditFiles(
	stdin io.Reader, next map[string]*apiextensionsv1.CustomResourceDefinition, bundle *audit.Bundle,
) (*audit.Report, error) {
	var renderings []audit.Rendering
	var found []audit.Finding
	names := map[string]bool{}
	for _, file := range o.files {
		rendering, err := renderingOf(file, stdin)
		if err != nil {
			return nil, err
		}
		if len(o.upgrade) > 0 {
			rendering.CRDs = slices.DeleteFunc(rendering.CRDs, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return next[crd.Name] == nil })
		}
		renderings = append(renderings, rendering)
		for _, crd := range rendering.CRDs {
			names[crd.Name] = true
			for _, finding := range audit.Check(&audit.Observed{
				CRD: crd, Source: file, Next: next[crd.Name], Bundle: bundle, Service: rendering.Service(crd), Now: time.Now(), Soon: o.soon,
			}) {
				if !slices.ContainsFunc(found, func(other audit.Finding) bool { return equality.Semantic.DeepEqual(finding, other) }) {
					found = append(found, finding) // renderings have the same findings
				}
			}
		}
	}
	switch {
	case len(names) == 0 && len(o.upgrade) > 0:
		return nil, fmt.Errorf("%s: no CustomResourceDefinition of --upgrade %s found", sourcesOf(o.files), sourcesOf(o.upgrade))
	case len(names) == 0:
		return nil, fmt.Errorf("%s: no CustomResourceDefinition found", sourcesOf(o.files))
	}
	return audit.NewReport(len(names), append(found, audit.Compare(renderings)...), nil, o.threshold()), nil
}

// renderingOf reads the definitions and Services of a file or directory.
func renderingOf(file string, stdin io.Reader) (audit.Rendering, error) {
	rendering := audit.Rendering{Source: file}
	objects, err := readObjects([]string{file}, stdin)
	if err != nil {
		return rendering, err
	}
	for _, object := range objects {
		if object.Kind == definitionManifest {
			crd, err := verify.ReadDefinition(object)
			if err != nil {
				return rendering, err
			}
			rendering.CRDs = append(rendering.CRDs, crd)
			continue
		}
		if object.Kind == "ClusterServiceVersion" {
			if rendering.Bundle, err = audit.BundleOf(object.JSON); err != nil {
				return rendering, fmt.Errorf("%s: %w", object, err)
			}
		}
		if rendering.Services == nil && slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "Service"}, object.Kind) {
			rendering.Services = map[string]*audit.Service{}
		}
		if object.Kind == "Service" && object.APIVersion == corev1.SchemeGroupVersion.String() {
			service := corev1.Service{}
			if err := json.Unmarshal(object.JSON, &service); err != nil {
				return rendering, fmt.Errorf("%s: %w", object, err)
			}
			rendering.Services[object.Name] = audit.ServiceOf(&service)
		}
	}
	return rendering, nil
}

func (o *auditOptions) auditCluster(
	ctx context.Context, names []string, next map[string]*apiextensionsv1.CustomResourceDefinition, bundle *audit.Bundle, stderr io.Writer,
) (*audit.Report, error) {
	config, err := reach(o.config)
	if err != nil {
		return nil, err
	}
	progress := &progress{to: stderr, interactive: isTerminal(stderr), what: "definitions"}
	report, err := live.Audit(ctx, config, live.Options{
		Names: slices.Compact(slices.Sorted(slices.Values(names))), Next: next, Bundle: bundle, NoReads: o.noReads, Soon: o.soon, AtOnce: o.atOnce,
		Threshold: o.threshold(), Now: time.Now(),
		Progress: func(done, of int) { progress.page(int64(done), int64(of-done)) },
	})
	progress.clear()
	return report, err
}

// next returns the manifests of --upgrade by name, and the bundle for OLM that has them. It ignores other
// documents.
func (o *auditOptions) next(stdin io.Reader) (next map[string]*apiextensionsv1.CustomResourceDefinition, bundle *audit.Bundle, err error) {
	next = map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range o.upgrade {
		rendering, err := renderingOf(file, stdin)
		if err != nil {
			return nil, nil, err
		}
		for _, crd := range rendering.CRDs {
			next[crd.Name] = crd
		}
		if rendering.Bundle != nil {
			bundle = rendering.Bundle
		}
	}
	if len(o.upgrade) > 0 && len(next) == 0 {
		return nil, nil, fmt.Errorf("%s: no CustomResourceDefinition found", sourcesOf(o.upgrade))
	}
	return next, bundle, nil
}
