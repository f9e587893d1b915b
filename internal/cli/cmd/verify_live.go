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

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

// liveOptions are the flags that select objects of a cluster.
type liveOptions struct {
	live     bool
	config   *genericclioptions.ConfigFlags
	sample   int64
	selector string
	pageSize int64
}

func (o *liveOptions) addFlags(command *cobra.Command, usage string) {
	command.Flags().BoolVar(&o.live, "live", false, usage)
	o.config = namespacedFlags(command, "with --live: try only the objects of this namespace; default all namespaces")
	flags := command.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "with --live: try only the objects with these labels")
	flags.Int64Var(&o.sample, "sample", 0, "with --live: try only this number of objects, the first by namespace and name")
	flags.Int64Var(&o.pageSize, "page-size", 500, "with --live: objects to read in one request")
}

// checkUnused returns an error for a flag that requires --live.
func (o *liveOptions) checkUnused() error {
	for flag, used := range map[string]bool{"namespace": *o.config.Namespace != "", "selector": o.selector != "", "sample": o.sample != 0, "context": hasComma(o.config)} {
		if used {
			return fmt.Errorf("--%s selects objects of a cluster: add --live", flag)
		}
	}
	return nil
}

// validate checks the flags of a command that tests objects in files, or in a cluster.
func (o *liveOptions) validate(files []string) error {
	switch {
	case !o.live:
		return o.checkUnused()
	case len(files) > 0:
		return errors.New("-f and --live exclude each other: objects come from files, or from a cluster")
	case o.sample < 0:
		return fmt.Errorf("--sample must not be negative, is %d", o.sample)
	case o.pageSize < 1:
		return fmt.Errorf("--page-size must be at least 1, is %d", o.pageSize)
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("--selector is not a label selector: %w", err)
	}
	return nil
}

// sources returns the cluster, nil if the command needs none, and the source of the objects.
func (o *liveOptions) sources(command *cobra.Command, files []string, needsCluster bool) (*live.Cluster, source, error) {
	if !o.live && !needsCluster {
		return nil, inFiles(files, stdinOf(command)), nil
	}
	from, err := connectToRead(o.config)
	if o.live {
		return from, o.inCluster(from, command.ErrOrStderr()), err
	}
	return from, inFiles(files, stdinOf(command)), err
}

// inCluster are the objects in a cluster that the flags select.
func (o *liveOptions) inCluster(from *live.Cluster, stderr io.Writer) source {
	shown := &progress{to: stderr, interactive: isTerminal(stderr), what: "objects"}
	return func(ctx context.Context, checker *verify.Checker, name string) (string, error) {
		// The definition of the cluster, even if a file has one: it says how objects are stored.
		crd, err := from.Definition(ctx, name)
		if err != nil {
			return "", err
		}
		version, asStored, err := live.VersionToRead(crd)
		if err != nil {
			return "", err
		}
		if err := o.checkFits(checker, crd, version); err != nil {
			return "", err
		}
		if !asStored || len(crd.Status.StoredVersions) > 1 {
			checker.Warn(fmt.Sprintf("some objects are stored in another version than %s, in which the command read them (stored: %s): they passed through the current conversion of the cluster, which is %s",
				version, strings.Join(crd.Status.StoredVersions, ", "), crds.Strategy(crd)))
		}
		query := live.Query{
			Resource: crds.Resource(crd, version), Namespace: *o.config.Namespace,
			Selector: o.selector, Sample: o.sample, PageSize: o.pageSize,
		}
		err = from.Objects(ctx, query, func(object manifest.Object) { checker.Check(ctx, object) }, shown.page)
		shown.end()
		return o.describe(version), err
	}
}

// checkFits returns an error if the policy or the flags do not fit the objects of the cluster.
func (o *liveOptions) checkFits(checker *verify.Checker, crd *apiextensionsv1.CustomResourceDefinition, version string) error {
	if !slices.Contains(checker.Versions(), version) {
		return fmt.Errorf("the cluster has objects of version %s, but the policy converts only %s: add the version to the CustomResourceDefinition of --crd",
			version, strings.Join(checker.Versions(), ", "))
	}
	if *o.config.Namespace != "" && crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		return fmt.Errorf("%s has no namespaces: leave out --namespace", crd.Spec.Names.Kind)
	}
	return nil
}

// describe says which objects were read.
func (o *liveOptions) describe(version string) string {
	text := "the cluster, at version " + version
	if namespace := *o.config.Namespace; namespace != "" {
		text += ", in namespace " + namespace
	}
	if o.selector != "" {
		text += ", with labels " + o.selector
	}
	if o.sample > 0 {
		text += fmt.Sprintf(", the first %d at most", o.sample)
	}
	return text
}
