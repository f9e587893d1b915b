// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
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
	config   *genericclioptions.ConfigFlags
	sample   int64
	selector string
	pageSize int64
}

func (o *liveOptions) addFlags(command *cobra.Command) {
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

func (o *liveOptions) validate() error {
	if o.sample < 0 {
		return fmt.Errorf("--sample must not be negative, is %d", o.sample)
	}
	if o.pageSize < 1 {
		return fmt.Errorf("--page-size must be at least 1, is %d", o.pageSize)
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("--selector is not a label selector: %w", err)
	}
	return nil
}

func (o *liveOptions) connect(stderr io.Writer) (source, error) {
	connected, err := connectToRead(o.config)
	if err != nil {
		return nil, err
	}
	return &liveSource{connected, o, &progress{to: stderr, interactive: isTerminal(stderr), what: "objects"}}, nil
}

// liveSource has objects in a cluster.
type liveSource struct {
	live     *live.Cluster
	options  *liveOptions
	progress *progress
}

func (s *liveSource) cluster() cluster { return s.live }

func (s *liveSource) check(ctx context.Context, checker *verify.Checker, name string) (string, error) {
	// The definition of the cluster, even if a file has one: it says how objects are stored.
	crd, err := s.live.Definition(ctx, name)
	if err != nil {
		return "", err
	}
	version, asStored, err := live.VersionToRead(crd)
	if err != nil {
		return "", err
	}
	if err := s.checkFits(checker, crd, version); err != nil {
		return "", err
	}
	if !asStored || len(crd.Status.StoredVersions) > 1 {
		checker.Warn(fmt.Sprintf("some objects are stored in another version than %s, in which the command read them (stored: %s): they passed through the current conversion of the cluster, which is %s",
			version, strings.Join(crd.Status.StoredVersions, ", "), crds.Strategy(crd)))
	}
	query := live.Query{
		Resource: crds.Resource(crd, version), Namespace: *s.options.config.Namespace,
		Selector: s.options.selector, Sample: s.options.sample, PageSize: s.options.pageSize,
	}
	err = s.live.Objects(ctx, query, func(object manifest.Object) { checker.Check(ctx, object) }, s.progress.page)
	s.progress.end()
	return s.describe(version), err
}

// checkFits returns an error if the policy or the flags do not fit the objects of the cluster.
func (s *liveSource) checkFits(checker *verify.Checker, crd *apiextensionsv1.CustomResourceDefinition, version string) error {
	if !slices.Contains(checker.Versions(), version) {
		return fmt.Errorf("the cluster has objects of version %s, but the policy converts only %s: add the version to the CustomResourceDefinition of --crd",
			version, strings.Join(checker.Versions(), ", "))
	}
	if *s.options.config.Namespace != "" && crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		return fmt.Errorf("%s has no namespaces: leave out --namespace", crd.Spec.Names.Kind)
	}
	return nil
}

// describe says which objects were read.
func (s *liveSource) describe(version string) string {
	text := "the cluster, at version " + version
	if namespace := *s.options.config.Namespace; namespace != "" {
		text += ", in namespace " + namespace
	}
	if s.options.selector != "" {
		text += ", with labels " + s.options.selector
	}
	if s.options.sample > 0 {
		text += fmt.Sprintf(", the first %d at most", s.options.sample)
	}
	return text
}
