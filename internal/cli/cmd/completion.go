// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// completionTimeout is how long a user waits for a list after pressing a key.
const completionTimeout = 3 * time.Second

// complete offers fixed values for a flag.
func complete(command *cobra.Command, flag string, values ...string) {
	_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// completion suggests values that begin with the typed text.
type completion = func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// namesIn returns the names of all objects of a kind in the cluster, except
// those that the user has already typed.
func namesIn(config *genericclioptions.ConfigFlags, kind schemaKind) completion {
	return func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		var found []string
		for _, name := range listNames(ctx, config, kind) {
			if strings.HasPrefix(name, typed) && !slices.Contains(args, name) {
				found = append(found, name)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// firstArgument suggests names for the first argument only.
func firstArgument(names completion) completion {
	return func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(command, args, typed)
	}
}

// schemaKind is a kind whose objects can be listed by name.
type schemaKind = metav1.TypeMeta

var (
	policyKind     = schemaKind{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ConversionPolicyList"}
	definitionKind = schemaKind{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinitionList"}
	namespaceKind  = schemaKind{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "NamespaceList"}
)

// listNames reads only names. On any error, there is nothing to suggest.
func listNames(ctx context.Context, config *genericclioptions.ConfigFlags, kind schemaKind) []string {
	api, err := connect(config)
	if err != nil {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{TypeMeta: kind}
	if err := api.List(ctx, list); err != nil {
		return nil
	}
	var names []string
	for _, object := range list.Items {
		names = append(names, object.Name)
	}
	return names
}

// contextsOf returns the contexts of the kubeconfig.
func contextsOf(config *genericclioptions.ConfigFlags) completion {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		raw, err := config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		// Some commands accept several contexts: the last one is completed.
		earlier := typed[:strings.LastIndexByte(typed, ',')+1]
		var names []string
		for name := range raw.Contexts {
			if !slices.Contains(strings.Split(earlier, ","), name) {
				names = append(names, earlier+name)
			}
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
