// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	"github.com/conversion-operator/conversion-operator/internal/operator/dependents/live"
)

// exitIncomplete means that a command found nothing, and could not check everything.
const exitIncomplete = 3

// dependentsOptions are the flags of the dependents command.
type dependentsOptions struct {
	config    *genericclioptions.ConfigFlags
	output    output
	versions  []string
	also      []string
	auditLogs []string
	helm      bool
	helmMap   string
	repair    bool
	dryRun    bool
	record    string
	qps       float32
	pageSize  int64
	most      int
	timeout   time.Duration
}

func newDependentsCommand() *cobra.Command {
	options := dependentsOptions{}
	command := &cobra.Command{
		Use:   "dependents CUSTOMRESOURCEDEFINITION",
		Short: "Find what still names an old version, and repair it",
		Long: `Find what still names a version of a CustomResourceDefinition, and would break when
the version goes: ownerReferences of any objects, field managers, admission webhooks
and policies, autoscalers, references of Flux, Argo CD, Crossplane and others, Helm
releases, and clients in an audit log. The command needs no operator.

The command reads the metadata of all objects in the cluster, page by page, and only a
few kinds completely. It writes nothing without --repair.

--repair changes ownerReferences, and with --helm the release records of Helm, to the
version that stays. A write happens only if the object has not changed since it was
read. The command does not change what usually has a manifest in a repository, such as
webhooks. Run it with --dry-run first.

Rights: get of the customresourcedefinition, and list of all resources. For --helm, also
get of secrets and configmaps. For --repair, also get of the owners and patch of the
objects that are repaired; API servers with the admission plugin
OwnerReferencesPermissionEnforcement also require delete of these objects.

Exit codes:
  0  nothing names the version, and everything was read
  1  something names the version; after --repair, something still does
  2  the command could not do its work: a flag is wrong, or the cluster cannot be read
  3  nothing was found, but something could not be read; the output says what`,
		Example: `  conversion-operator dependents crontabs.example.com --version v1beta1
  conversion-operator dependents crontabs.example.com --version v1beta1 --helm -o wide
  conversion-operator dependents crontabs.example.com --version v1beta1 --helm --repair --dry-run
  conversion-operator dependents crontabs.example.com --audit-log audit.log`,
	}
	options.addFlags(command)
	return forUsers(command, cobra.ExactArgs(1), options.run)
}

func (o *dependentsOptions) addFlags(command *cobra.Command) {
	o.config = clusterFlags(command)
	acceptContexts(command)
	o.output.add(command, formTable, formWide, formJSON, formYAML, formSARIF, formJUnit)
	command.ValidArgsFunction = firstArgument(namesIn(o.config, definitionKind))
	flags := command.Flags()
	flags.StringArrayVar(&o.versions, "version", nil, "version that goes, also one that the definition no longer has; can be given several times; default all except the storage version")
	flags.StringArrayVar(&o.also, "also", nil, "resource in whose objects to look for references, for example pipelines.tekton.dev, or configmaps for manifests in them; can be given several times")
	flags.StringArrayVar(&o.auditLogs, "audit-log", nil, "audit log of an API server in which to look for clients, - for stdin; can be given several times")
	flags.BoolVar(&o.helm, "helm", false, "read the release records of Helm in Secrets and ConfigMaps")
	flags.StringVar(&o.helmMap, "helm-map", "", "file to write, with the mapping for Helm's plugin mapkubeapis; needs --version")
	flags.BoolVar(&o.repair, "repair", false, "change ownerReferences, and with --helm release records, to the version that stays")
	flags.BoolVar(&o.dryRun, "dry-run", false, "with --repair: let the API server check each write, and write nothing")
	flags.StringVar(&o.record, "record", "", "with --repair: file to which each write is appended at once, as a line of JSON")
	flags.Float32Var(&o.qps, "qps", 20, "maximum number of requests per second, after a burst of five seconds")
	flags.Int64Var(&o.pageSize, "page-size", 500, "number of objects whose metadata is in memory at the same time")
	flags.IntVar(&o.most, "most", 10000, "maximum number of dependents, and of repairs, to list; the others are counted")
	flags.DurationVar(&o.timeout, "timeout", 0, "how long to read; the rest then counts as not read; 0 for no limit")
}

func (o *dependentsOptions) validate() error {
	if err := o.output.validate(); err != nil {
		return err
	}
	several := hasComma(o.config)
	switch {
	case several && o.repair:
		return errors.New("--repair changes one cluster: name one --context")
	case several && len(o.auditLogs) > 0:
		return errors.New("--audit-log is of one cluster: name one --context")
	case o.dryRun && !o.repair:
		return errors.New("--dry-run needs --repair: without it the command writes nothing")
	case o.record != "" && !o.repair:
		return errors.New("--record needs --repair: without it the command writes nothing")
	case o.helmMap != "" && len(o.versions) == 0:
		return errors.New("--helm-map needs --version")
	case !(o.qps > 0):
		return fmt.Errorf("--qps must be more than 0, is %g", o.qps)
	case o.pageSize < 1:
		return fmt.Errorf("--page-size must be at least 1, is %d", o.pageSize)
	case o.most < 1:
		return fmt.Errorf("--most must be at least 1, is %d", o.most)
	case o.timeout < 0:
		return fmt.Errorf("--timeout must not be negative, is %s", o.timeout)
	case slices.Contains(o.versions, ""):
		return errors.New("--version must not be empty")
	}
	return nil
}

func (o *dependentsOptions) run(command *cobra.Command, args []string) error {
	if err := o.validate(); err != nil {
		return err
	}
	name := args[0]
	reporting := reporting[dependents.Report]{
		config: o.config, output: &o.output, stdout: command.OutOrStdout(), stderr: command.ErrOrStderr(),
		find: func(context.Context) (*dependents.Report, error) { return o.find(command, name) },
		writeText: func(w, summary io.Writer, report *dependents.Report) error {
			return errors.Join(report.WriteTable(w, o.output.form == formWide), report.WriteSummary(summary))
		},
		findings: foundByDependents,
		judge:    judgeDependents,
	}
	return reporting.run(command.Context())
}

func judgeDependents(report *dependents.Report) error {
	switch _, failed := report.Repaired(); {
	case failed > 0:
		return &exitError{exitFound, fmt.Errorf("%d repairs failed; see the report", failed)}
	case len(report.Dependents)+report.More > 0:
		return &exitError{exitFound, errors.New("dependents found; see the report")}
	case len(report.NotChecked) > 0:
		return &exitError{exitIncomplete, errors.New("no dependents found, but not everything could be read; see the report")}
	}
	return nil
}

func (o *dependentsOptions) find(command *cobra.Command, name string) (report *dependents.Report, err error) {
	config, err := reach(o.config)
	if err != nil {
		return nil, err
	}
	ctx := command.Context()
	if o.timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		ctx = bounded
	}
	record, end, err := o.openRecord()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	stderr := command.ErrOrStderr()
	progress := &progress{to: stderr, interactive: isTerminal(stderr)}
	target, report, err := live.Find(ctx, config, live.Options{
		CRD: name, Versions: o.versions, Also: o.also, Helm: o.helm, Repair: o.repair, DryRun: o.dryRun, Record: record,
		QPS: o.qps, PageSize: o.pageSize, Most: o.most, Progress: progress.step,
	})
	progress.clear()
	if err != nil {
		return report, err
	}
	return report, errors.Join(o.readLogs(target, report, stdinOf(command)), o.writeMap(target))
}

// openRecord opens the record for appending: a run that repeats an interrupted one adds to it.
func (o *dependentsOptions) openRecord() (record io.Writer, end func() error, err error) {
	if o.record == "" {
		return nil, func() error { return nil }, nil
	}
	file, err := os.OpenFile(o.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open --record: %w", err)
	}
	return file, file.Close, nil
}

func (o *dependentsOptions) readLogs(target *dependents.Target, report *dependents.Report, stdin io.Reader) error {
	if len(o.auditLogs) == 0 {
		report.Skipped = append(report.Skipped, "which clients read the version: add --audit-log")
		return nil
	}
	for _, name := range o.auditLogs {
		found, others, err := readLog(target, name, stdin)
		if err != nil {
			return fmt.Errorf("--audit-log %s: %w", name, err)
		}
		report.Dependents, report.More = append(report.Dependents, found...), report.More+others
	}
	report.Finish()
	return nil
}

func readLog(target *dependents.Target, name string, stdin io.Reader) (found []dependents.Dependent, others int, err error) {
	if name == "-" {
		return target.Readers(stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return target.Readers(file)
}

func (o *dependentsOptions) writeMap(target *dependents.Target) error {
	if o.helmMap == "" {
		return nil
	}
	text, err := dependents.HelmMap(target, o.versions)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.helmMap, text, 0o644); err != nil {
		return fmt.Errorf("write --helm-map: %w", err)
	}
	return nil
}
