//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	clientset "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

type apiServer struct {
	*testenv.Server
	// cached is set if it has a watch cache.
	cached  bool
	crds    clientset.CustomResourceDefinitionInterface
	objects dynamic.Interface
}

// scenarios run on every API server.
var scenarios = map[string]func(*testing.T, *apiServer){
	"versions are read as they were written": testVersions,
	"versions are served and not served":     testServed,
	"watchers see their own version":         testWatch,
	"labels and annotations":                 testLabels,
	"unknown fields are pruned":              testPruning,
	"defaults of versions and of rules":      testDefaults,
	"a field that is only computed":          testDerived,
	"values of all forms":                    testForms,
	"null where it may be and may not":       testNullable,
	"rules and schemas change":               testChanges,
	"validation of the version in use":       testValidation,
	"the status of every version":            testStatus,
	"preserved status is metadata":           testPreservedStatus,
	"preserved status and manifests":         testPreservedStatusManifests,
	"preserved status is held by admission":  testPreservedStatusHeld,
	"the converter is down":                  testDown,
	"too much to preserve":                   testOverflow,
	"truncated, stored at the hub":           testTruncated,
	"truncated, storage moves":               testTruncatedFlip,
	"managers apply at many versions":        testApply,
	"manifests are rewritten":                testRewrittenManifests,
	"preserved data is applied":              testApplyPreserved,
	"a spec is emptied by applying":          testApplyEmptied,
	"managers update at many versions":       testUpdateManagers,
	"rules fill no applied fragment":         testApplyDefaults,
	"a version that managers used goes away": testRetiredVersion,
	"the definition is deleted":              testDeleteDefinition,
	"one object in a review":                 testReviews,
	"API servers tell of themselves":         testOwnMetrics,
}

// atOnce is the number of parallel scenarios, which mostly wait: objects of a new CRD cannot be
// created for two seconds.
const atOnce = 8

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	testenv.Parallel(atOnce)
	os.Exit(m.Run())
}

func TestWithWatchCache(t *testing.T) {
	t.Parallel()
	playAll(t, true)
}

func TestWithoutWatchCache(t *testing.T) {
	release.Only(t, "TestWithWatchCache")
	t.Parallel()
	playAll(t, false)
}

func playAll(t *testing.T, cached bool) {
	server := start(t, cached)
	for name, play := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, server)
		})
	}
}

func start(t *testing.T, cached bool) *apiServer {
	t.Helper()
	server := &apiServer{Server: testenv.For(t, testenv.Options{NoWatchCache: !cached}), cached: cached}
	crds, err := clientset.NewForConfig(server.Kubeconfig)
	expect.NoError(t, err)
	server.crds = crds.CustomResourceDefinitions()
	server.objects, err = dynamic.NewForConfig(server.Kubeconfig)
	expect.NoError(t, err)
	return server
}
