// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
)

// uninstallCheckOptions are the flags of the uninstall-check command.
type uninstallCheckOptions struct {
	config    *genericclioptions.ConfigFlags
	namespace string
}

func newUninstallCheckCommand() *cobra.Command {
	options := uninstallCheckOptions{}
	command := &cobra.Command{
		Use:   "uninstall-check",
		Short: "Check that the operator can be uninstalled",
		Long: `Check that the operator can be uninstalled: that there is no ConversionPolicy and no
ConverterFleet, whose finalizers only the operator removes, and no
CustomResourceDefinition that converts through a Service in the operator's namespace.
The Helm chart runs this command before an uninstallation.

Rights: list of conversionpolicies, converterfleets and customresourcedefinitions.

Exit codes:
  0  the operator can be uninstalled
  1  something needs the operator; the error says what
  2  the cluster could not be read`,
	}
	options.config = clusterFlags(command)
	command.Flags().StringVar(&options.namespace, "operator-namespace", "conversion-system", "namespace of the operator and of the converter pods")
	_ = command.RegisterFlagCompletionFunc("operator-namespace", namesIn(options.config, namespaceKind)) // the flag is there
	return forUsers(command, cobra.NoArgs, func(command *cobra.Command, _ []string) error { return options.run(command) })
}

func (o *uninstallCheckOptions) run(command *cobra.Command) error {
	api, err := connect(o.config)
	if err != nil {
		return err
	}
	found, err := o.obstacles(command.Context(), api)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return &exitError{exitFound, fmt.Errorf("the operator cannot be uninstalled yet: delete the policies, then the fleets, and wait until they are gone:\n  %s", strings.Join(found, "\n  "))}
	}
	fmt.Fprintln(command.OutOrStdout(), "The operator can be uninstalled.")
	return nil
}

// obstacles describes everything that needs the operator. A kind that is not installed has no
// objects.
func (o *uninstallCheckOptions) obstacles(ctx context.Context, api client.Client) ([]string, error) {
	var found []string
	policies, fleets := &v1alpha1.ConversionPolicyList{}, &v1alpha1.ConverterFleetList{}
	if err := api.List(ctx, policies); err != nil && !meta.IsNoMatchError(err) {
		return nil, policyReadError(err)
	}
	for i := range policies.Items {
		found = append(found, "ConversionPolicy "+policies.Items[i].Name)
	}
	if err := api.List(ctx, fleets); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("read ConverterFleets: %w", err)
	}
	for i := range fleets.Items {
		found = append(found, "ConverterFleet "+fleets.Items[i].Name)
	}
	converting, err := o.converting(ctx, api)
	for _, name := range converting {
		found = append(found, fmt.Sprintf("CustomResourceDefinition %s: it converts through a Service in %s, and its objects would be unreadable without that", name, o.namespace))
	}
	return found, err
}

// converting returns the CustomResourceDefinitions that convert in the operator's namespace. Those
// without a policy belong to orphaned ones.
func (o *uninstallCheckOptions) converting(ctx context.Context, api client.Client) ([]string, error) {
	var names []string
	page := &apiextensionsv1.CustomResourceDefinitionList{}
	var size pages.Size // definitions are large, and this runs with little memory
	for {
		err := size.Read(ctx, 50, func(ctx context.Context, limit int64) error {
			return api.List(ctx, page, client.Limit(limit), client.Continue(page.Continue))
		})
		if err != nil {
			return nil, fmt.Errorf("read CustomResourceDefinitions: %w", err)
		}
		for i := range page.Items {
			// The operator's own kind has no objects.
			if page.Items[i].Spec.Group != "probe."+v1alpha1.GroupVersion.Group && o.convertsIn(&page.Items[i]) {
				names = append(names, page.Items[i].Name)
			}
		}
		if page.Continue == "" {
			return names, nil
		}
	}
}

func (o *uninstallCheckOptions) convertsIn(crd *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := crd.Spec.Conversion
	return conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil &&
		conversion.Webhook.ClientConfig.Service != nil && conversion.Webhook.ClientConfig.Service.Namespace == o.namespace
}
