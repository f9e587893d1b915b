// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheme registers the kinds that clients of this project read and write.
package scheme

import (
	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// New returns a scheme with the kinds that the manager and the commands use: policies,
// CustomResourceDefinitions, the objects of converters and migrations, and the Certificates of
// cert-manager.
func New() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, cmv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}
