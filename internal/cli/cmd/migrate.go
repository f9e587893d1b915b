// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/migration/standalone"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
)

// migrateOptions are the flags of the migrate command.
type migrateOptions struct {
	standalone.Options
	config *genericclioptions.ConfigFlags
	output output

	all          bool
	acceptLosses bool
	dryRun       bool
	printRole    bool
	bindTo       string
	prune        bool
	record       string
	timeout      time.Duration

	pace, verify string
	fallback     []string
}

func newMigrateCommand() *cobra.Command {
	var o migrateOptions
	command := &cobra.Command{
		Use:   "migrate [CUSTOMRESOURCEDEFINITION|RESOURCE...]",
		Short: "Rewrite stored objects at their storage version, without the operator",
		Long: `Rewrite stored objects at their storage version, without the operator: from a shell,
a pipeline or a hook of a chart. Nothing needs to be installed in the cluster.

Name CustomResourceDefinitions, such as crontabs.example.com, or other resources,
such as secrets and deployments.apps. --all migrates every resource that is stored
in etcd, as after an upgrade of Kubernetes, or a change of encryption keys.

The command waits until every API server writes at the storage version, writes each
object again without changing it, and checks that it is stored at that version.
Afterwards, it removes the other versions from status.storedVersions of the
CustomResourceDefinition, if every object was rewritten, and the definition has not
changed. It writes a record into a ConfigMap, or into a file. If the command is
interrupted, run it again: it begins with the first object, and writes only what is
not rewritten yet.

It does not migrate resources that another client migrates: a ConversionPolicy, or a
StorageVersionMigration. It refuses a CustomResourceDefinition with strategy None
whose storage version lacks fields of a stored version.

Rights: list and patch of the resources, and some others; --print-role prints them
all.

Exit codes:
  0  every object is rewritten and verified
  1  some objects are not, or the command was interrupted; nothing was pruned for
     their resources
  2  the command could not start, as with wrong flags, or without the rights`,
		Example: `  conversion-operator migrate crontabs.example.com --dry-run
  conversion-operator migrate crontabs.example.com
  conversion-operator migrate secrets configmaps --max-writes-per-second=50
  conversion-operator migrate --all -o json
  conversion-operator migrate crontabs.example.com --print-role --bind-to=ci:migrate | kubectl apply -f -`,
	}
	o.config = clusterFlags(command)
	command.ValidArgsFunction = namesIn(o.config, definitionKind)
	o.output.add(command, formText, formJSON, formYAML)
	o.addFlags(command)
	return forUsers(command, cobra.ArbitraryArgs, o.run)
}

func (o *migrateOptions) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&o.all, "all", false, "migrate every resource that is stored in etcd, except events and leases")
	flags.BoolVar(&o.dryRun, "dry-run", false, "write nothing: count the objects, try some of them in dry runs, and say what a run would do")
	flags.BoolVar(&o.printRole, "print-role", false, "write nothing: print the Roles that the command needs, as YAML")
	flags.StringVar(&o.bindTo, "bind-to", "", "with --print-role, also print bindings to this ServiceAccount, as NAMESPACE:NAME")
	flags.BoolVar(&o.acceptLosses, "accept-losses", false, "also migrate without a conversion if the storage version lacks fields of stored versions, whose values are then lost")
	flags.BoolVar(&o.prune, "prune", true, "remove the other versions from status.storedVersions after a complete run")
	flags.StringVar(&o.RecordNamespace, "record-namespace", standalone.RecordNamespace, "namespace of the ConfigMaps with the records; the command creates the default one")
	flags.StringVar(&o.record, "record", "", "file for the records, instead of ConfigMaps; other computers do not see that the run is under way")
	flags.DurationVar(&o.timeout, "timeout", 0, "when to stop; 0 for never")
	flags.StringVar(&o.pace, "pace", string(v1alpha1.MigrationGentle), "Gentle, which leaves API servers to other clients, or Fast")
	flags.IntVar(&o.Concurrency, "concurrency", contract.DefaultConcurrency, "the most objects at a time")
	flags.IntVar(&o.MaxWritesPerSecond, "max-writes-per-second", 0, "the most writes per second; 0 for any number")
	flags.StringVar(&o.verify, "verify", "", "which objects to check again at the end: None, Sample or Full; default Sample, and Full if not every API server answers at its own address")
	flags.StringSliceVar(&o.fallback, "fallback", nil, "other ways to write objects that are refused, in this order: Status, OldVersion")
	flags.DurationVar(&o.PropagationDelay, "propagation-delay", 2*time.Minute, "how long API servers may still write at the old version: twice their --request-timeout")
	complete(command, "pace", string(v1alpha1.MigrationGentle), string(v1alpha1.MigrationFast))
	complete(command, "verify", string(v1alpha1.MigrationVerifyNone), string(v1alpha1.MigrationVerifySample), string(v1alpha1.MigrationVerifyFull))
	complete(command, "fallback", string(v1alpha1.MigrationFallbackStatus), string(v1alpha1.MigrationFallbackOldVersion))
	_ = command.RegisterFlagCompletionFunc("record-namespace", namesIn(o.config, namespaceKind)) // the flag is there
}

// The bounds of numbers, as those of the policy.
const (
	maxConcurrency        = 256
	maxMaxWritesPerSecond = 100000
)

func (o *migrateOptions) validate(names []string) error {
	switch {
	case o.all && len(names) > 0:
		return errors.New("name resources, or add --all, not both")
	case !o.all && len(names) == 0:
		return errors.New("name at least one CustomResourceDefinition or resource, or add --all")
	case slices.Contains(names, ""):
		return errors.New("the name of a resource must not be empty")
	case o.dryRun && o.printRole:
		return errors.New("--dry-run and --print-role exclude each other")
	case o.bindTo != "" && !o.printRole:
		return errors.New("--bind-to needs --print-role")
	case o.Concurrency < 1 || o.Concurrency > maxConcurrency:
		return fmt.Errorf("--concurrency must be from 1 to %d, is %d", maxConcurrency, o.Concurrency)
	case o.MaxWritesPerSecond < 0 || o.MaxWritesPerSecond > maxMaxWritesPerSecond:
		return fmt.Errorf("--max-writes-per-second must be from 0 to %d, is %d", maxMaxWritesPerSecond, o.MaxWritesPerSecond)
	case o.PropagationDelay < 0:
		return fmt.Errorf("--propagation-delay must not be negative, is %s", o.PropagationDelay)
	case o.timeout < 0:
		return fmt.Errorf("--timeout must not be negative, is %s", o.timeout)
	}
	if problems := validation.IsDNS1123Label(o.RecordNamespace); len(problems) > 0 {
		return fmt.Errorf("--record-namespace %q is no name of a namespace: %s", o.RecordNamespace, problems[0])
	}
	if err := o.readChoices(); err != nil {
		return err
	}
	o.KeepStoredVersions = !o.prune
	return o.output.validate()
}

// readChoices reads the flags with fixed values.
func (o *migrateOptions) readChoices() error {
	var err error
	if o.Pace, err = choice("pace", o.pace, v1alpha1.MigrationGentle, v1alpha1.MigrationFast); err != nil {
		return err
	}
	if o.verify != "" {
		if o.Verify, err = choice("verify", o.verify, v1alpha1.MigrationVerifyNone, v1alpha1.MigrationVerifySample, v1alpha1.MigrationVerifyFull); err != nil {
			return err
		}
	}
	for _, each := range o.fallback {
		fallback, err := choice("fallback", each, v1alpha1.MigrationFallbackStatus, v1alpha1.MigrationFallbackOldVersion)
		if err != nil {
			return err
		}
		if slices.Contains(o.Fallback, fallback) {
			return fmt.Errorf("--fallback names %s twice", fallback)
		}
		o.Fallback = append(o.Fallback, fallback)
	}
	return nil
}

func choice[T ~string](flag, value string, allowed ...T) (T, error) {
	if !slices.Contains(allowed, T(value)) {
		var names []string
		for _, each := range allowed {
			names = append(names, string(each))
		}
		return "", fmt.Errorf("--%s must be %s, is %q", flag, strings.Join(names, " or "), value)
	}
	return T(value), nil
}

// migrateCluster are the clients of the command.
type migrateCluster struct {
	config *rest.Config
	core   kubernetes.Interface
	finder standalone.Finder
}

func (o *migrateOptions) connect(program string) (*migrateCluster, error) {
	config, err := reach(o.config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	// The engine limits its requests; API servers repeat warnings with every request.
	config.QPS, config.WarningHandlerWithContext = -1, rest.NoWarnings{}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return &migrateCluster{config, core, standalone.Finder{Client: api, Discovery: served, Program: program, Check: o.checkLosses}}, nil
}

// checkLosses refuses a definition without a conversion if a rewrite at the storage version drops
// fields of another version that objects may be stored at.
func (o *migrateOptions) checkLosses(crd *apiextensionsv1.CustomResourceDefinition) error {
	if o.acceptLosses || crds.Strategy(crd) != apiextensionsv1.NoneConverter {
		return nil
	}
	for _, finding := range audit.Check(&audit.Observed{CRD: crd, Live: true}) {
		lost := finding.ID == audit.NoneLosesFields || finding.ID == audit.NoneTypesDiffer
		if lost && slices.Contains(crd.Status.StoredVersions, finding.Version) {
			return fmt.Errorf("CustomResourceDefinition %s: %s; objects may be stored at %s, and a rewrite at %s would drop these values: convert them, or add --accept-losses",
				crd.Name, finding.Evidence, finding.Version, crds.StorageVersion(crd))
		}
	}
	return nil
}

func (o *migrateOptions) run(command *cobra.Command, names []string) error {
	if err := o.validate(names); err != nil {
		return err
	}
	ctx := command.Context()
	cluster, err := o.connect(calledAs(command))
	if err != nil {
		return err
	}
	scope := standalone.Scope{All: o.all}
	var left []standalone.LeftOut
	if o.all {
		scope.Targets, left, err = cluster.finder.All(ctx)
	} else {
		scope.Targets, err = cluster.finder.Named(ctx, names)
	}
	if err != nil {
		return err
	}
	if o.printRole {
		return o.printRoles(command.OutOrStdout(), cluster, scope)
	}
	if o.record != "" {
		// A dry run opens it, too, and so sees another process.
		if o.RecordFile, err = standalone.OpenFile(ctx, o.record); err != nil {
			return err
		}
		defer func() { _ = o.RecordFile.Close() }()
	}
	if err := o.checkRights(ctx, command.ErrOrStderr(), cluster, scope); err != nil {
		return err
	}
	if o.timeout > 0 {
		bounded, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not finished after %s", o.timeout))
		defer cancel()
		ctx = bounded
	}
	shows := newMigrationProgress(command.ErrOrStderr(), len(scope.Targets))
	migrator := standalone.Migrator{Options: o.Options, Config: cluster.config, Client: cluster.finder.Client, Core: cluster.core, Observe: shows.observe, Warn: shows.warn}
	if o.dryRun {
		return o.showForecast(command, migrator.Forecast(ctx, scope.Targets), left)
	}
	stop := shows.start()
	results := migrator.Migrate(ctx, scope.Targets)
	stop()
	return o.showResults(command, results, left)
}

// checkRights returns an error that names the rights that the user does not have.
func (o *migrateOptions) checkRights(ctx context.Context, to io.Writer, cluster *migrateCluster, scope standalone.Scope) error {
	missing, err := standalone.Missing(ctx, cluster.core.AuthorizationV1().SelfSubjectAccessReviews(), cluster.finder.Rights(scope, &o.Options))
	if err != nil {
		return err
	}
	var needed []string
	for _, right := range missing {
		if right.Optional {
			fmt.Fprintf(to, "without the right to %s, the run cannot ask each API server: it verifies every object instead\n", right)
			continue
		}
		needed = append(needed, right.String())
	}
	if len(needed) > 0 {
		return fmt.Errorf("rights are missing: %s; --print-role prints all that the command needs", strings.Join(needed, "; "))
	}
	return nil
}
